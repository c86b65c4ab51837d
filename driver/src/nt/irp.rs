//! I/O request packets.

use wdk_sys::ntddk::{IofCompleteRequest, PsGetCurrentProcessId};
use wdk_sys::{CCHAR, IO_STACK_LOCATION, IRP, NTSTATUS, PIRP};

/// IO_NO_INCREMENT (wdm.h): no better priority for the caller who waited.
const NO_INCREMENT: CCHAR = 0;

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
        // SAFETY: the union holds the stack location for as long as a driver has the packet
        let overlay = unsafe { irp.Tail.Overlay.__bindgen_anon_2 };
        // SAFETY: as above
        let stack = unsafe { overlay.__bindgen_anon_1.CurrentStackLocation };
        // SAFETY: IoGetCurrentIrpStackLocation: the packet's current location belongs to this driver
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

    /// Of a device control: code, system buffer, bytes of input, bytes of output. The buffer is as long as the
    /// longer of both; it is empty where the I/O manager made none.
    pub fn control(&mut self) -> (u32, &mut [u8], usize, usize) {
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
        (parameters.IoControlCode, bytes, input, output)
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

/// The process that called; process numbers of Windows have 32 bits. In a dispatch routine, at PASSIVE_LEVEL.
pub fn current_process() -> u32 {
    // SAFETY: no requirement
    let id = unsafe { PsGetCurrentProcessId() };
    u32::try_from(id.addr()).unwrap_or(u32::MAX)
}
