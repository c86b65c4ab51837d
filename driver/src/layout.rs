//! What the driver relies on in the kernel's structures. Made by the test `layout` from the official bindings of the WDK;
//! not edited by hand.

macro_rules! layout {
    ($($type:ident: $size:literal bytes, aligned to $alignment:literal {
        $($first:ident $(.$inner:ident)*: $offset:literal,)*
    })*) => {
        $(
            const _: () = assert!(size_of::<wdk_sys::$type>() == $size);
            const _: () = assert!(align_of::<wdk_sys::$type>() == $alignment);
            $(const _: () = assert!(core::mem::offset_of!(wdk_sys::$type, $first $(.$inner)*) == $offset);)*
        )*
    };
}

layout! {
    _DEVICE_OBJECT: 336 bytes, aligned to 16 {
        DriverObject: 8,
        Flags: 48,
        Reserved: 320,
        SecurityDescriptor: 272,
    }
    _DRIVER_OBJECT: 336 bytes, aligned to 8 {
        DeviceObject: 8,
        DriverUnload: 104,
        Flags: 16,
        MajorFunction: 112,
    }
    _FAST_MUTEX: 56 bytes, aligned to 8 {
        Count: 0,
        Event: 24,
    }
    _FILE_OBJECT: 216 bytes, aligned to 8 {
        DeviceObject: 8,
        Event: 152,
        Flags: 80,
    }
    _GROUP_AFFINITY: 16 bytes, aligned to 8 {
        Group: 8,
        Mask: 0,
        Reserved: 10,
    }
    _IO_STACK_LOCATION: 72 bytes, aligned to 8 {
        Control: 3,
        DeviceObject: 40,
        FileObject: 48,
        Flags: 2,
        MajorFunction: 0,
        Parameters.DeviceIoControl.InputBufferLength: 16,
        Parameters.DeviceIoControl.IoControlCode: 24,
        Parameters.DeviceIoControl.OutputBufferLength: 8,
    }
    _IRP: 208 bytes, aligned to 16 {
        AssociatedIrp.SystemBuffer: 24,
        Cancel: 68,
        CancelIrql: 69,
        CancelRoutine: 104,
        Flags: 16,
        IoStatus.Information: 56,
        IoStatus.__bindgen_anon_1.Status: 48,
        MdlAddress: 8,
        Overlay: 88,
        Tail.Overlay.__bindgen_anon_2.__bindgen_anon_1.CurrentStackLocation: 184,
    }
    _KDPC: 64 bytes, aligned to 8 {}
    _KEVENT: 24 bytes, aligned to 8 {}
    _KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT: 16 bytes, aligned to 4 {
        NtNumber: 4,
        State: 0,
        Status: 8,
    }
    _KTIMER: 64 bytes, aligned to 8 {}
    _LARGE_INTEGER: 8 bytes, aligned to 8 {
        QuadPart: 0,
        __bindgen_anon_1.HighPart: 4,
        __bindgen_anon_1.LowPart: 0,
    }
    _LUID: 8 bytes, aligned to 4 {
        HighPart: 4,
        LowPart: 0,
    }
    _MDL: 48 bytes, aligned to 8 {
        MappedSystemVa: 24,
        MdlFlags: 10,
    }
    _OBJECT_ATTRIBUTES: 48 bytes, aligned to 8 {
        Attributes: 24,
        Length: 0,
        ObjectName: 16,
        RootDirectory: 8,
        SecurityDescriptor: 32,
        SecurityQualityOfService: 40,
    }
    _OSVERSIONINFOW: 276 bytes, aligned to 4 {
        dwBuildNumber: 12,
        dwOSVersionInfoSize: 0,
    }
    _PROCESSOR_NUMBER: 4 bytes, aligned to 2 {
        Group: 0,
        Number: 2,
        Reserved: 3,
    }
    _UNICODE_STRING: 16 bytes, aligned to 8 {
        Buffer: 8,
        Length: 0,
        MaximumLength: 2,
    }
}
