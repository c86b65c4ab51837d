//! Time that goes on while the machine sleeps.

#![expect(unsafe_code, reason = "writes what the driver points to, and calls Wine's function")]

use crate::nt;
use std::sync::atomic::{AtomicU64, Ordering};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn KeQueryInterruptTime() -> u64;
}

/// Units of KeQueryInterruptTime, of 100 ns, in a millisecond.
const UNITS: u64 = 10_000;

/// Milliseconds that the machine slept, all in all, and that took no time.
static SLEPT: AtomicU64 = AtomicU64::new(0);

/// The machine slept for so long.
pub fn slept(milliseconds: u64) {
    SLEPT.fetch_add(milliseconds, Ordering::SeqCst);
}

/// KeQueryPerformanceCounter, which Wine has in hal.dll only.
pub unsafe extern "system" fn performance_counter(frequency: *mut i64) -> i64 {
    let (value, ticks) = nt::performance_counter();
    if !frequency.is_null() {
        // SAFETY: not null, and then the driver promises a variable.
        unsafe { frequency.write(ticks) };
    }
    let slept = i128::from(SLEPT.load(Ordering::SeqCst)) * i128::from(ticks) / 1_000;
    value.saturating_add(i64::try_from(slept).unwrap_or(i64::MAX))
}

/// KeQueryInterruptTime.
pub extern "system" fn interrupt_time() -> u64 {
    // SAFETY: takes nothing that could be wrong.
    let now = unsafe { KeQueryInterruptTime() };
    now.saturating_add(SLEPT.load(Ordering::SeqCst).saturating_mul(UNITS))
}
