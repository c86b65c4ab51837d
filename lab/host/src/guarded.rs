//! Functions that Wine does well, except that it lets them be called at any IRQL. The levels are those of the WDK's
//! documentation.

#![expect(unsafe_code, reason = "hands calls on to Wine")]

use crate::{
    level,
    nt::{APC_LEVEL, DISPATCH_LEVEL, NtStatus, PASSIVE_LEVEL, Pointer},
    violation::caught,
};

macro_rules! guarded {
    ($($level:ident $name:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        mod wine {
            use super::{NtStatus, Pointer};

            #[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
            unsafe extern "system" {
                $(pub fn $name($($argument: $type),*) $(-> $result)?;)*
            }
        }

        /// The address that is served for one of these functions.
        pub fn find(name: &str) -> Option<usize> {
            $(
                #[expect(non_snake_case, reason = "the names of the WDK")]
                unsafe extern "system" fn $name($($argument: $type),*) $(-> $result)? {
                    caught(stringify!($name), (), || level::check(stringify!($name), $level));
                    // SAFETY: as the driver called it.
                    unsafe { wine::$name($($argument),*) }
                }
            )*
            match name {
                $(stringify!($name) => Some($name as *const () as usize),)*
                _ => None,
            }
        }
    };
}

guarded! {
    APC_LEVEL IoCreateDevice(
        driver: Pointer, extension: u32, name: Pointer, kind: u32, characteristics: u32, exclusive: u8, device: Pointer
    ) -> NtStatus;
    APC_LEVEL IoDeleteDevice(device: Pointer);
    PASSIVE_LEVEL IoCreateSymbolicLink(link: Pointer, name: Pointer) -> NtStatus;
    PASSIVE_LEVEL IoDeleteSymbolicLink(link: Pointer) -> NtStatus;
    DISPATCH_LEVEL IofCompleteRequest(irp: Pointer, boost: i8);
    DISPATCH_LEVEL IoAllocateWorkItem(device: Pointer) -> Pointer;
    DISPATCH_LEVEL IoQueueWorkItem(item: Pointer, routine: Pointer, queue: u32, context: Pointer);
    DISPATCH_LEVEL IoFreeWorkItem(item: Pointer);
    PASSIVE_LEVEL ObOpenObjectByPointer(
        object: Pointer, attributes: u32, state: Pointer, access: u32, kind: Pointer, mode: i8, handle: Pointer
    ) -> NtStatus;
    PASSIVE_LEVEL ZwClose(handle: Pointer) -> NtStatus;
    PASSIVE_LEVEL PsCreateSystemThread(
        thread: Pointer, access: u32, attributes: Pointer, process: Pointer, client: Pointer, routine: Pointer,
        context: Pointer
    ) -> NtStatus;
    DISPATCH_LEVEL KeSetEvent(event: Pointer, increment: i32, wait: u8) -> i32;
    APC_LEVEL KeWaitForSingleObject(
        object: Pointer, reason: u32, mode: i8, alertable: u8, timeout: Pointer
    ) -> NtStatus;
}
