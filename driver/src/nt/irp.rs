//! I/O request packets.

use wdk_sys::ntddk::{IofCompleteRequest, MmMapLockedPagesSpecifyCache};
use wdk_sys::{
    _MEMORY_CACHING_TYPE, _MM_PAGE_PRIORITY, CCHAR, IO_STACK_LOCATION, IRP, MDL_MAPPED_TO_SYSTEM_VA,
    MDL_SOURCE_IS_NONPAGED_POOL, NTSTATUS, PIRP, SL_PENDING_RETURNED,
};

/// IO_NO_INCREMENT (wdm.h): no priority boost for the waiting caller.
const NO_INCREMENT: CCHAR = 0;

/// KernelMode (wdm.h).
const KERNEL_MODE: CCHAR = 0;

/// MdlMappingNoExecute (wdm.h).
const MAPPING_NO_EXECUTE: u32 = 0x4000_0000;

/// Converts a status with NT_SUCCESS to a `Result`.
///
/// # Errors
/// The status, if it is not a success.
pub const fn check(status: NTSTATUS) -> Result<(), NTSTATUS> {
    if status >= 0 { Ok(()) } else { Err(status) }
}

/// Major function codes that the driver serves (IRP_MJ_ of wdm.h).
#[derive(Debug, Clone, Copy)]
pub enum Major {
    /// IRP_MJ_CREATE.
    Create,
    /// IRP_MJ_CLEANUP or IRP_MJ_CLOSE: a handle gets either or both.
    Release,
    /// IRP_MJ_DEVICE_CONTROL.
    DeviceControl,
    /// Anything else.
    Other,
}

/// A request that the I/O manager passed to the driver, which owns it until completion.
pub struct Request<'a> {
    irp: &'a mut IRP,
    stack: &'a IO_STACK_LOCATION,
}

impl Request<'_> {
    /// Wraps the argument of a dispatch routine.
    ///
    /// # Safety
    /// `irp` comes from the I/O manager, and no other code uses it before [`complete`](Self::complete).
    pub unsafe fn new(irp: PIRP) -> Self {
        // SAFETY: the driver owns the packet until it completes it
        let irp = unsafe { &mut *irp };
        let stack = stack_location(irp);
        // SAFETY: the packet's current location belongs to this driver
        Self { irp, stack: unsafe { &*stack } }
    }

    /// Returns the kind of request.
    pub fn major(&self) -> Major {
        match u32::from(self.stack.MajorFunction) {
            wdk_sys::IRP_MJ_CREATE => Major::Create,
            wdk_sys::IRP_MJ_CLEANUP | wdk_sys::IRP_MJ_CLOSE => Major::Release,
            wdk_sys::IRP_MJ_DEVICE_CONTROL => Major::DeviceControl,
            _ => Major::Other,
        }
    }

    /// Returns the address of the file object. It is the same for all requests through one handle and its duplicates,
    /// and unique while the handle is open.
    pub fn file(&self) -> usize {
        self.stack.FileObject.addr()
    }

    /// Returns the I/O control code.
    pub fn code(&self) -> u32 {
        // SAFETY: device controls use this member of the union; for other requests the bits have no meaning
        unsafe { self.stack.Parameters.DeviceIoControl }.IoControlCode
    }

    /// Returns the system buffer of a METHOD_BUFFERED device control, and the lengths of input and output. The buffer
    /// has the longer of both lengths; it is empty if the I/O manager allocated none.
    pub fn buffered(&mut self) -> (&mut [u8], usize, usize) {
        // SAFETY: METHOD_BUFFERED device controls use this member of the union
        let parameters = unsafe { self.stack.Parameters.DeviceIoControl };
        // SAFETY: as above
        let buffer = unsafe { self.irp.AssociatedIrp.SystemBuffer }.cast::<u8>();
        let (input, output) = (parameters.InputBufferLength as usize, parameters.OutputBufferLength as usize);
        let bytes = if buffer.is_null() {
            Default::default()
        } else {
            // SAFETY: the I/O manager allocated it for this request with the longer of both lengths, and initialized it
            unsafe { core::slice::from_raw_parts_mut(buffer, input.max(output)) }
        };
        (bytes, input, output)
    }

    /// Returns the system buffer and the client's locked pages of a METHOD_OUT_DIRECT device control. Either is empty
    /// if it does not exist; the pages also if memory is too low to map them.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    pub fn direct(&mut self) -> (&[u8], &mut [u8]) {
        // SAFETY: METHOD_OUT_DIRECT device controls use this member of the union
        let parameters = unsafe { self.stack.Parameters.DeviceIoControl };
        // SAFETY: as above
        let buffer = unsafe { self.irp.AssociatedIrp.SystemBuffer }.cast::<u8>();
        let input = if buffer.is_null() {
            Default::default()
        } else {
            // SAFETY: the I/O manager allocated and initialized it for the input of this request
            unsafe { core::slice::from_raw_parts(buffer, parameters.InputBufferLength as usize) }
        };
        let pages = self.mapped_pages();
        let output = if pages.is_null() {
            Default::default()
        } else {
            // SAFETY: this many bytes of the client are locked and mapped until the request completes. The kernel has
            // no other reference to them. Concurrent writes by the client cannot be told from data that it reads later.
            unsafe { core::slice::from_raw_parts_mut(pages, parameters.OutputBufferLength as usize) }
        };
        (input, output)
    }

    /// Maps the client's pages as MmGetSystemAddressForMdlSafe does, which is inline in the WDK.
    fn mapped_pages(&self) -> *mut u8 {
        const MAPPED: u32 = MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL;
        let list = self.irp.MdlAddress;
        if list.is_null() {
            return core::ptr::null_mut();
        }
        // SAFETY: not null; it describes this request's pages as long as the driver owns the packet
        let pages = unsafe { &*list };
        if u32::from(pages.MdlFlags.cast_unsigned()) & MAPPED != 0 {
            return pages.MappedSystemVa.cast();
        }
        // SAFETY: the pages are locked; completion of the request unmaps them
        let address = unsafe {
            MmMapLockedPagesSpecifyCache(
                list,
                KERNEL_MODE,
                _MEMORY_CACHING_TYPE::MmCached,
                core::ptr::null_mut(),
                0,
                _MM_PAGE_PRIORITY::NormalPagePriority.cast_unsigned() | MAPPING_NO_EXECUTE,
            )
        };
        address.cast()
    }

    /// Marks the packet pending as IoMarkIrpPending does, which is inline in the WDK. [`new`](Self::new) wraps it again
    /// later.
    pub fn into_pending(self) -> PIRP {
        let Self { irp, .. } = self;
        // SAFETY: the packet's current location belongs to this driver, and `self` no longer refers to it
        unsafe { (*stack_location(irp)).Control |= (SL_PENDING_RETURNED & 0xFF) as u8 };
        irp
    }

    /// Completes the request, and returns the status for the dispatch routine.
    pub fn complete(self, status: NTSTATUS, information: usize) -> NTSTATUS {
        self.irp.IoStatus.Information = information as u64;
        self.irp.IoStatus.__bindgen_anon_1.Status = status;
        // SAFETY: the driver owns the packet, and this call consumes `self`
        unsafe { IofCompleteRequest(self.irp, NO_INCREMENT) };
        status
    }
}

/// Returns the current stack location as IoGetCurrentIrpStackLocation does, which is inline in the WDK.
fn stack_location(irp: &IRP) -> *mut IO_STACK_LOCATION {
    // SAFETY: the union holds the stack location as long as a driver owns the packet
    let overlay = unsafe { irp.Tail.Overlay.__bindgen_anon_2 };
    // SAFETY: as above
    unsafe { overlay.__bindgen_anon_1.CurrentStackLocation }
}
