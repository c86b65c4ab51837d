//! I/O request packets.

use wdk_sys::ntddk::{IofCompleteRequest, MmMapLockedPagesSpecifyCache, PsGetCurrentProcessId, PsGetCurrentThreadId};
use wdk_sys::{
    _MEMORY_CACHING_TYPE, _MM_PAGE_PRIORITY, CCHAR, IO_STACK_LOCATION, IRP, MDL_MAPPED_TO_SYSTEM_VA,
    MDL_SOURCE_IS_NONPAGED_POOL, NTSTATUS, PIRP, SL_PENDING_RETURNED,
};

/// IO_NO_INCREMENT (wdm.h): no better priority for the caller who waited.
const NO_INCREMENT: CCHAR = 0;

/// KernelMode (wdm.h).
const KERNEL_MODE: CCHAR = 0;

/// MdlMappingNoExecute (wdm.h).
const MAPPING_NO_EXECUTE: u32 = 0x4000_0000;

/// NT_SUCCESS as a `Result`.
///
/// # Errors
/// The status, if it is none of success.
pub const fn check(status: NTSTATUS) -> Result<(), NTSTATUS> {
    if status >= 0 { Ok(()) } else { Err(status) }
}

/// The requests that the driver serves (IRP_MJ_ of wdm.h).
#[derive(Debug, Clone, Copy)]
pub enum Major {
    /// IRP_MJ_CREATE.
    Create,
    /// IRP_MJ_CLEANUP or IRP_MJ_CLOSE: either may be the only one, or the second.
    Release,
    /// IRP_MJ_DEVICE_CONTROL.
    DeviceControl,
    /// Anything else.
    Other,
}

/// A request that the I/O manager has handed to a dispatch routine, and that nobody else has.
pub struct Request<'a> {
    irp: &'a mut IRP,
    stack: &'a IO_STACK_LOCATION,
}

impl Request<'_> {
    /// The request of a dispatch routine's argument.
    ///
    /// # Safety
    /// `irp` is what the I/O manager gave the dispatch routine, and is not used in another way before
    /// [`complete`](Self::complete).
    pub unsafe fn new(irp: PIRP) -> Self {
        // SAFETY: the dispatch routine owns the packet until it completes it
        let irp = unsafe { &mut *irp };
        let stack = stack_location(irp);
        // SAFETY: the packet's current location belongs to this driver
        Self { irp, stack: unsafe { &*stack } }
    }

    /// What is wanted.
    pub fn major(&self) -> Major {
        match u32::from(self.stack.MajorFunction) {
            wdk_sys::IRP_MJ_CREATE => Major::Create,
            wdk_sys::IRP_MJ_CLEANUP | wdk_sys::IRP_MJ_CLOSE => Major::Release,
            wdk_sys::IRP_MJ_DEVICE_CONTROL => Major::DeviceControl,
            _ => Major::Other,
        }
    }

    /// The address of the file object: the same for all requests through one handle and its duplicates, and
    /// no other's while it is open.
    pub fn file(&self) -> usize {
        self.stack.FileObject.addr()
    }

    /// The code of a device control.
    pub fn code(&self) -> u32 {
        // SAFETY: device controls use this member of the union, and of others the bits mean nothing
        unsafe { self.stack.Parameters.DeviceIoControl }.IoControlCode
    }

    /// Of a device control by METHOD_BUFFERED: system buffer, bytes of input, bytes of output. The buffer is as long as
    /// the longer of both; it is empty where the I/O manager made none.
    pub fn buffered(&mut self) -> (&mut [u8], usize, usize) {
        // SAFETY: METHOD_BUFFERED device controls use this member of the union
        let parameters = unsafe { self.stack.Parameters.DeviceIoControl };
        // SAFETY: as above
        let buffer = unsafe { self.irp.AssociatedIrp.SystemBuffer }.cast::<u8>();
        let (input, output) = (parameters.InputBufferLength as usize, parameters.OutputBufferLength as usize);
        let bytes = if buffer.is_null() {
            Default::default()
        } else {
            // SAFETY: the I/O manager allocated and initialized it for the longer of both, for this request
            unsafe { core::slice::from_raw_parts_mut(buffer, input.max(output)) }
        };
        (bytes, input, output)
    }

    /// Of a device control by METHOD_OUT_DIRECT: system buffer and the client's pages, which the I/O manager has locked.
    /// They are empty where there are none, or where they can not be mapped for want of memory. DISPATCH_LEVEL at most.
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
            // SAFETY: so many bytes of the client are locked and mapped until the request is complete. The kernel has no
            // other reference to them; what the client writes there meanwhile can not be told from what it reads.
            unsafe { core::slice::from_raw_parts_mut(pages, parameters.OutputBufferLength as usize) }
        };
        (input, output)
    }

    /// MmGetSystemAddressForMdlSafe, which is inline in the WDK.
    fn mapped_pages(&self) -> *mut u8 {
        const MAPPED: u32 = MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL;
        let list = self.irp.MdlAddress;
        if list.is_null() {
            return core::ptr::null_mut();
        }
        // SAFETY: not null, and then it describes this request's pages as long as the driver has the packet
        let pages = unsafe { &*list };
        if u32::from(pages.MdlFlags.cast_unsigned()) & MAPPED != 0 {
            return pages.MappedSystemVa.cast();
        }
        // SAFETY: the pages are locked; the mapping goes with them when the request is complete
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

    /// IoMarkIrpPending, which is inline in the WDK; the packet is for [`new`](Self::new) in another place.
    pub fn into_pending(self) -> PIRP {
        let Self { irp, .. } = self;
        // SAFETY: the packet's current location belongs to this driver, and `self` has no reference to it any more
        unsafe { (*stack_location(irp)).Control |= (SL_PENDING_RETURNED & 0xFF) as u8 };
        irp
    }

    /// Gives the request back to the I/O manager, and answers the status for the dispatch routine to return.
    pub fn complete(self, status: NTSTATUS, information: usize) -> NTSTATUS {
        self.irp.IoStatus.Information = information as u64;
        self.irp.IoStatus.__bindgen_anon_1.Status = status;
        // SAFETY: the packet is this driver's, and `self` is gone with this call
        unsafe { IofCompleteRequest(self.irp, NO_INCREMENT) };
        status
    }
}

/// IoGetCurrentIrpStackLocation, which is inline in the WDK.
fn stack_location(irp: &IRP) -> *mut IO_STACK_LOCATION {
    // SAFETY: the union holds the stack location for as long as a driver has the packet
    let overlay = unsafe { irp.Tail.Overlay.__bindgen_anon_2 };
    // SAFETY: as above
    unsafe { overlay.__bindgen_anon_1.CurrentStackLocation }
}

/// The thread that runs, or that was interrupted. Any IRQL.
pub fn current_thread() -> u32 {
    // SAFETY: no requirement
    let id = unsafe { PsGetCurrentThreadId() };
    u32::try_from(id.addr()).unwrap_or(u32::MAX)
}

/// The process of that thread; process numbers of Windows have 32 bits. Any IRQL.
pub fn current_process() -> u32 {
    // SAFETY: no requirement
    let id = unsafe { PsGetCurrentProcessId() };
    u32::try_from(id.addr()).unwrap_or(u32::MAX)
}
