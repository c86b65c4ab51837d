//! The HAL: who has the counters, and the handler of the performance monitor interrupt.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};

use wdk_sys::ntddk::{HalAllocateHardwareCounters, HalFreeHardwareCounters, MmGetSystemRoutineAddress};
use wdk_sys::{HANDLE, NTSTATUS, STATUS_INSUFFICIENT_RESOURCES, ULONG};

use super::irp::check;
use super::system_process::Worker;
use super::text::Text;
use super::trap_frame::TrapFrame;

/// HalProfileSourceInterruptHandler of HAL_SET_INFORMATION_CLASS (ntddk.h).
const PROFILE_SOURCE_INTERRUPT_HANDLER: ULONG = 1;

/// STATUS_NOT_SUPPORTED (ntstatus.h).
const STATUS_NOT_SUPPORTED: NTSTATUS = 0xC000_00BB_u32.cast_signed();

/// A handler of the interrupt: at PROFILE_LEVEL, with what was interrupted.
pub type Handler = unsafe extern "C" fn(frame: *mut TrapFrame);

/// The beginning of HAL_DISPATCH (ntddk.h), which never changed.
#[repr(C)]
struct Dispatch {
    version: ULONG,
    query: *mut c_void,
    set: Option<unsafe extern "C" fn(class: ULONG, size: ULONG, buffer: *mut c_void) -> NTSTATUS>,
}

const _: () = assert!(core::mem::offset_of!(Dispatch, set) == 0x10);

/// The oldest HAL_DISPATCH that has the member.
const FIRST_VERSION: ULONG = 3;

static NAME: Text<16> = Text::new("HalDispatchTable");

/// HalDispatchTable, or null where there is none. It is looked up once: who has the interrupt can give it back without.
/// PASSIVE_LEVEL.
fn dispatch_table() -> *mut Dispatch {
    static FOUND: AtomicPtr<Dispatch> = AtomicPtr::new(core::ptr::null_mut());
    let mut table = FOUND.load(Ordering::Relaxed);
    if table.is_null() {
        // SAFETY: the name is only read; PASSIVE_LEVEL by this function's contract
        table = unsafe { MmGetSystemRoutineAddress(&mut NAME.counted()) }.cast();
        FOUND.store(table, Ordering::Relaxed);
    }
    table
}

/// Registers the handler, or with `None` takes it away: then the HAL serves the interrupt as before. PASSIVE_LEVEL, in the
/// System process, since the HAL keeps the slot for the process that filled it.
///
/// # Errors
/// The HAL's NTSTATUS: STATUS_UNSUCCESSFUL where another has the slot, or where the HAL's profile interface has no
/// interrupt.
pub fn set_interrupt_handler(handler: Option<Handler>) -> Result<(), NTSTATUS> {
    let table = dispatch_table();
    if table.is_null() {
        return Err(STATUS_NOT_SUPPORTED);
    }
    // SAFETY: the export is the table itself, which lives as long as the system
    let Dispatch { version, set, .. } = unsafe { table.read() };
    let set = set.filter(|_| version >= FIRST_VERSION).ok_or(STATUS_NOT_SUPPORTED)?;
    let mut handler = handler;
    // SAFETY: the class takes the address of a function of this form, or null, in 8 bytes
    check(unsafe { set(PROFILE_SOURCE_INTERRUPT_HANDLER, 8, (&raw mut handler).cast()) })
}

/// All counters of all processors are ours while this lives.
pub struct Reservation {
    /// A token of the HAL's, not an object's handle.
    set: HANDLE,
    worker: Worker,
}

// SAFETY: the HAL takes the token from any thread
unsafe impl Send for Reservation {}

impl Reservation {
    /// HalAllocateHardwareCounters, of everything: what releases before Windows 10 1903 have, and all that there is for
    /// AMD. APC_LEVEL at most.
    ///
    /// # Errors
    /// The HAL's NTSTATUS: STATUS_INSUFFICIENT_RESOURCES or STATUS_DEVICE_BUSY where another has counters.
    pub fn new() -> Result<Self, NTSTATUS> {
        let worker = Worker::new().ok_or(STATUS_INSUFFICIENT_RESOURCES)?;
        let mut outcome = Err(STATUS_INSUFFICIENT_RESOURCES);
        worker.run(&mut || {
            let mut set: HANDLE = core::ptr::null_mut();
            // SAFETY: no group and no list mean everything; the handle may be written; a worker is at PASSIVE_LEVEL
            let status =
                unsafe { HalAllocateHardwareCounters(core::ptr::null_mut(), 0, core::ptr::null_mut(), &raw mut set) };
            outcome = check(status).map(|()| set.expose_provenance());
        });
        Ok(Self { set: core::ptr::with_exposed_provenance_mut(outcome?), worker })
    }
}

impl Drop for Reservation {
    /// APC_LEVEL at most.
    fn drop(&mut self) {
        let set = self.set.expose_provenance();
        self.worker.run(&mut || {
            // SAFETY: the token that `new` got, freed once, at PASSIVE_LEVEL. A failure leaves nothing to be done.
            let _ = unsafe { HalFreeHardwareCounters(core::ptr::with_exposed_provenance_mut(set)) };
        });
    }
}
