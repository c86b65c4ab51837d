//! Listens to processors that are added.

use crate::{
    kernel::{self, Change, NtStatus, Pointer, STATUS_SUCCESS, STATUS_UNSUCCESSFUL},
    processor,
};
use core::{
    ptr,
    sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering},
};

/// So many of the calls are told.
const TOLD: usize = 16;

/// How often it was called, and for each call a number: stage, processor, number of the processor, processors that
/// were active, level, in this order from the highest nibble; then how the operation went.
pub type Report = [u32; 1 + 2 * TOLD];

static REGISTRATION: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(ptr::null_mut());
static CALLS: AtomicU32 = AtomicU32::new(0);
static SEEN: [[AtomicU32; 2]; TOLD] = [const { [const { AtomicU32::new(0) }; 2] }; TOLD];

/// What it answers to the beginning of a processor, and which.
static ANSWER: AtomicI32 = AtomicI32::new(STATUS_SUCCESS);
static UNWANTED: AtomicU32 = AtomicU32::new(0);

/// Registers, with these flags, and with this status for this processor.
pub fn listen(flags: u32, unwanted: Option<u32>) -> NtStatus {
    ANSWER.store(if unwanted.is_some() { STATUS_UNSUCCESSFUL } else { STATUS_SUCCESS }, Ordering::SeqCst);
    UNWANTED.store(unwanted.unwrap_or(u32::MAX), Ordering::SeqCst);
    CALLS.store(0, Ordering::SeqCst);
    // SAFETY: PASSIVE_LEVEL; a routine of the right type.
    let registration = unsafe { kernel::KeRegisterProcessorChangeCallback(changed, ptr::null_mut(), flags) };
    REGISTRATION.store(registration, Ordering::SeqCst);
    if registration.is_null() { STATUS_UNSUCCESSFUL } else { STATUS_SUCCESS }
}

/// Listens no more.
pub fn leave() {
    let registration = REGISTRATION.swap(ptr::null_mut(), Ordering::SeqCst);
    if !registration.is_null() {
        // SAFETY: PASSIVE_LEVEL; what was registered, once.
        unsafe { kernel::KeDeregisterProcessorChangeCallback(registration) };
    }
}

pub fn report() -> Report {
    let mut report = [0; 1 + 2 * TOLD];
    let values = core::iter::once(&CALLS).chain(SEEN.as_flattened());
    for (place, value) in report.iter_mut().zip(values) {
        *place = value.load(Ordering::SeqCst);
    }
    report
}

unsafe extern "system" fn changed(_context: Pointer, change: *const Change, answer: *mut NtStatus) {
    // SAFETY: the kernel lends it.
    let Change { stage, index, status, number } = unsafe { change.read() };
    let [_, _, number, _] = number;
    // SAFETY: no requirement.
    let active = unsafe { kernel::KeQueryActiveProcessorCountEx(0xFFFF) };
    let call = CALLS.fetch_add(1, Ordering::SeqCst);
    if let Some([seen, of]) = usize::try_from(call).ok().and_then(|call| SEEN.get(call)) {
        let digits = [stage, index, number.into(), active, processor::level()];
        seen.store(digits.into_iter().fold(0, |number, digit| number << 4 | digit), Ordering::SeqCst);
        of.store(status.cast_unsigned(), Ordering::SeqCst);
    }
    if stage == 0 && index == UNWANTED.load(Ordering::SeqCst) {
        // SAFETY: the kernel's variable, for the time of the call.
        unsafe { answer.write(ANSWER.load(Ordering::SeqCst)) };
    }
}
