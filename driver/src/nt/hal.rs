//! The HAL's dispatch table, and the handler of the performance monitor interrupt.

use core::ffi::c_void;

use wdk_sys::ntddk::MmGetSystemRoutineAddress;
use wdk_sys::{NTSTATUS, ULONG};

use super::irp::check;
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

/// Registers the handler, or with `None` takes it away: then the HAL serves the interrupt as before. PASSIVE_LEVEL, in the
/// System process, since the HAL keeps the slot for the process that filled it.
///
/// # Errors
/// The HAL's NTSTATUS: STATUS_UNSUCCESSFUL where another has the slot, or where the HAL's profile interface has no
/// interrupt.
pub fn set_interrupt_handler(handler: Option<Handler>) -> Result<(), NTSTATUS> {
    // SAFETY: the name is only read; PASSIVE_LEVEL by this function's contract
    let table = unsafe { MmGetSystemRoutineAddress(&mut NAME.counted()) }.cast::<Dispatch>();
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
