//! HAL functions: reservation of the counters, and the handler of the performance monitor interrupt.

use core::ffi::c_void;

use pmu::hal::information::HalProfileSourceInformationBuffer;
use protocol::HalSourceRecord;
use wdk_sys::ntddk::{HalAllocateHardwareCounters, HalFreeHardwareCounters};
use wdk_sys::{HANDLE, NTSTATUS, STATUS_INSUFFICIENT_RESOURCES, ULONG};

use super::irp::check;
use super::processors::Pinned;
use super::system_process::Worker;
use interrupt_path::TrapFrame;

/// HalProfileSourceInterruptHandler of HAL_SET_INFORMATION_CLASS (ntddk.h).
const PROFILE_SOURCE_INTERRUPT_HANDLER: ULONG = 1;

/// HalProfileSourceInformation of HAL_QUERY_INFORMATION_CLASS (ntddk.h).
const PROFILE_SOURCE_INFORMATION: ULONG = 1;

/// Sizes of the structure that the class takes: the one that Windows 10 itself passes, and that of
/// HAL_PROFILE_SOURCE_INFORMATION in the headers. The HAL refuses any other than its own.
const INFORMATION_SIZES: [ULONG; 2] = [24, 12];

/// STATUS_NOT_SUPPORTED (ntstatus.h).
const STATUS_NOT_SUPPORTED: NTSTATUS = 0xC000_00BB_u32.cast_signed();

/// An interrupt handler. It receives the interrupted context.
///
/// # IRQL
/// PROFILE_LEVEL.
pub type Handler = unsafe extern "C" fn(frame: *mut TrapFrame);

/// The beginning of HAL_DISPATCH (ntddk.h), which never changed.
#[repr(C)]
struct Dispatch {
    version: ULONG,
    query:
        Option<unsafe extern "C" fn(class: ULONG, size: ULONG, buffer: *mut c_void, returned: *mut ULONG) -> NTSTATUS>,
    set: Option<unsafe extern "C" fn(class: ULONG, size: ULONG, buffer: *mut c_void) -> NTSTATUS>,
}

const _: () = assert!(core::mem::offset_of!(Dispatch, query) == 0x08);
const _: () = assert!(core::mem::offset_of!(Dispatch, set) == 0x10);

/// First version of HAL_DISPATCH with the member.
const FIRST_VERSION: ULONG = 3;

// The import names the table itself: an address of code is what MmGetSystemRoutineAddress is for, and under kernel CFG
// it registers what it returns as a target of calls.
#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "C" {
    /// The HAL's table of functions (ntddk.h).
    static HalDispatchTable: Dispatch;
}

/// Returns the HAL's table of functions.
///
/// # Errors
/// STATUS_NOT_SUPPORTED if its version is older than the members.
///
/// # IRQL
/// Any.
fn dispatch() -> Result<Dispatch, NTSTATUS> {
    // SAFETY: the export is the table itself, which exists as long as the system. Volatile, because Windows fills it.
    let dispatch = unsafe { (&raw const HalDispatchTable).read_volatile() };
    if dispatch.version >= FIRST_VERSION { Ok(dispatch) } else { Err(STATUS_NOT_SUPPORTED) }
}

/// Registers the handler. `None` removes it, and the HAL serves the interrupt itself again. The caller must run in the
/// System process, because the HAL binds the slot to the process that filled it.
///
/// # Errors
/// The HAL's NTSTATUS: STATUS_UNSUCCESSFUL if another driver has the slot, or if the HAL's profile interface has no
/// interrupt.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn set_interrupt_handler(handler: Option<Handler>) -> Result<(), NTSTATUS> {
    let set = dispatch()?.set.ok_or(STATUS_NOT_SUPPORTED)?;
    let mut handler = handler;
    // SAFETY: the class takes the address of such a function, or null, in 8 bytes
    check(unsafe { set(PROFILE_SOURCE_INTERRUPT_HANDLER, 8, (&raw mut handler).cast()) })
}

/// Asks the HAL about the source of each record, and completes the records.
///
/// # Errors
/// STATUS_INSUFFICIENT_RESOURCES; then nothing was asked.
///
/// # IRQL
/// At most APC_LEVEL.
pub fn ask(records: &mut [HalSourceRecord]) -> Result<(), NTSTATUS> {
    let worker = Worker::new().ok_or(STATUS_INSUFFICIENT_RESOURCES)?;
    worker.run(&mut || records.iter_mut().for_each(ask_about));
    Ok(())
}

/// A buffer of 64 bytes for the class: more than the largest known structure, all of which begin alike.
#[repr(C)]
struct InformationBuffer {
    known: HalProfileSourceInformationBuffer,
    rest: [u32; 13],
}

/// Asks the HAL about the source of a record, with each known size until one is accepted. If none is, the record gets
/// the first refusal.
///
/// # IRQL
/// PASSIVE_LEVEL.
fn ask_about(record: &mut HalSourceRecord) {
    let mut refusal = None;
    for size in INFORMATION_SIZES {
        match query_source(record.source, size) {
            Ok(HalProfileSourceInformationBuffer { supported, interval, .. }) => {
                (record.status, record.supported, record.interval) = (0, supported.into(), interval);
                return;
            }
            Err(status) => refusal = refusal.or(Some(status)),
        }
    }
    let status = refusal.unwrap_or(STATUS_NOT_SUPPORTED);
    (record.status, record.supported, record.interval) = (status.cast_unsigned(), 0, 0);
}

/// Asks the HAL about a source, with a structure of this size.
///
/// # Errors
/// The HAL's NTSTATUS.
///
/// # IRQL
/// PASSIVE_LEVEL.
fn query_source(source: u32, size: ULONG) -> Result<HalProfileSourceInformationBuffer, NTSTATUS> {
    let query = dispatch()?.query.ok_or(STATUS_NOT_SUPPORTED)?;
    let known =
        HalProfileSourceInformationBuffer { profile_source: source, supported: 0, reserved: [0; 3], interval: 0 };
    let mut buffer = InformationBuffer { known, rest: [0; 13] };
    let mut returned = 0;
    // SAFETY: the class takes and returns a structure of a size in the buffer, and the number of bytes
    check(unsafe { query(PROFILE_SOURCE_INFORMATION, size, (&raw mut buffer).cast(), &raw mut returned) })?;
    Ok(buffer.known)
}

/// A reservation of all counters of all processors.
pub struct Reservation {
    /// A token of the HAL, not a handle to an object.
    set: HANDLE,
    worker: Worker,
}

// SAFETY: the HAL accepts the token from any thread
unsafe impl Send for Reservation {}

impl Reservation {
    /// Reserves all counters with HalAllocateHardwareCounters. Releases before Windows 10 1903, and all releases on AMD
    /// processors, cannot reserve less.
    ///
    /// # Errors
    /// The HAL's NTSTATUS: STATUS_INSUFFICIENT_RESOURCES or STATUS_DEVICE_BUSY if another driver has reserved counters.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn new() -> Result<Self, NTSTATUS> {
        let worker = Worker::new().ok_or(STATUS_INSUFFICIENT_RESOURCES)?;
        let mut outcome = Err(STATUS_INSUFFICIENT_RESOURCES);
        worker.run(&mut || {
            let mut set: HANDLE = core::ptr::null_mut();
            // SAFETY: no group and no list select everything; the HAL may write to the handle; a worker runs at
            // PASSIVE_LEVEL
            let status =
                unsafe { HalAllocateHardwareCounters(core::ptr::null_mut(), 0, core::ptr::null_mut(), &raw mut set) };
            outcome = check(status).map(|()| set.expose_provenance());
        });
        Ok(Self { set: core::ptr::with_exposed_provenance_mut(outcome?), worker })
    }
}

impl Reservation {
    /// Frees the counters with HalFreeHardwareCounters. It runs on processor 0, where they were reserved: since Windows
    /// 11 24H2 the HAL reportedly checks whether the counters of the current processor are reserved.
    ///
    /// # Errors
    /// The HAL's NTSTATUS, and the reservation, which still exists.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    pub fn free(self) -> Result<(), (Self, NTSTATUS)> {
        let set = self.set.expose_provenance();
        let mut outcome = Ok(());
        self.worker.run(&mut || {
            let _pinned = Pinned::to_boot_processor();
            // SAFETY: the token from `new`, which was not freed; a worker runs at PASSIVE_LEVEL
            outcome = check(unsafe { HalFreeHardwareCounters(core::ptr::with_exposed_provenance_mut(set)) });
        });
        outcome.map_err(|status| (self, status))
    }
}
