//! The callback for added processors.

use crate::{
    kernel::{self, Change, NtStatus, Pointer, STATUS_SUCCESS, STATUS_UNSUCCESSFUL},
    processor,
};
use core::{
    ptr,
    sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering},
};

/// Number of calls that are reported.
const REPORTED: usize = 16;

/// The number of calls; then two numbers for each call. The nibbles of the first are, from the highest: stage,
/// processor index, processor number, number of active processors, IRQL. The second is the status of the operation.
pub type Report = [u32; 1 + 2 * REPORTED];

static REGISTRATION: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(ptr::null_mut());
static CALLS: AtomicU32 = AtomicU32::new(0);
static SEEN: [[AtomicU32; 2]; REPORTED] = [const { [const { AtomicU32::new(0) }; 2] }; REPORTED];

/// The status that the callback returns before the processor `REJECTED` is added.
static REJECTION: AtomicI32 = AtomicI32::new(STATUS_SUCCESS);
static REJECTED: AtomicU32 = AtomicU32::new(0);

/// Registers the callback with these flags. The callback rejects processor `rejected`.
pub fn register(flags: u32, rejected: Option<u32>) -> NtStatus {
    REJECTION.store(if rejected.is_some() { STATUS_UNSUCCESSFUL } else { STATUS_SUCCESS }, Ordering::SeqCst);
    REJECTED.store(rejected.unwrap_or(u32::MAX), Ordering::SeqCst);
    CALLS.store(0, Ordering::SeqCst);
    // SAFETY: called at PASSIVE_LEVEL; the routine has the required type.
    let registration = unsafe { kernel::KeRegisterProcessorChangeCallback(changed, ptr::null_mut(), flags) };
    REGISTRATION.store(registration, Ordering::SeqCst);
    if registration.is_null() { STATUS_UNSUCCESSFUL } else { STATUS_SUCCESS }
}

/// Unregisters the callback.
pub fn unregister() {
    let registration = REGISTRATION.swap(ptr::null_mut(), Ordering::SeqCst);
    if !registration.is_null() {
        // SAFETY: called at PASSIVE_LEVEL, once for a registration.
        unsafe { kernel::KeDeregisterProcessorChangeCallback(registration) };
    }
}

pub fn report() -> Report {
    let mut report = [0; 1 + 2 * REPORTED];
    let values = core::iter::once(&CALLS).chain(SEEN.as_flattened());
    for (place, value) in report.iter_mut().zip(values) {
        *place = value.load(Ordering::SeqCst);
    }
    report
}

unsafe extern "system" fn changed(_context: Pointer, change: *const Change, answer: *mut NtStatus) {
    // SAFETY: the pointer is valid during the call.
    let Change { stage, index, status, number } = unsafe { change.read() };
    let [_, _, number, _] = number;
    // SAFETY: the function has no preconditions.
    let active = unsafe { kernel::KeQueryActiveProcessorCountEx(0xFFFF) };
    let call = CALLS.fetch_add(1, Ordering::SeqCst);
    if let Some([seen, of]) = usize::try_from(call).ok().and_then(|call| SEEN.get(call)) {
        let digits = [stage, index, number.into(), active, processor::level()];
        seen.store(digits.into_iter().fold(0, |number, digit| number << 4 | digit), Ordering::SeqCst);
        of.store(status.cast_unsigned(), Ordering::SeqCst);
    }
    if stage == 0 && index == REJECTED.load(Ordering::SeqCst) {
        // SAFETY: the pointer is valid during the call, and the status is writable.
        unsafe { answer.write(REJECTION.load(Ordering::SeqCst)) };
    }
}
