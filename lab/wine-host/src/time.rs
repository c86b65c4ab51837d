//! Time, which goes on while the machine sleeps, and which a test can set ahead.

#![expect(unsafe_code, reason = "writes what the driver points to")]

use crate::{nt, nt::NtStatus};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Units of KeQueryInterruptTime, of 100 ns, in a millisecond.
const UNITS: u64 = 10_000;

/// Milliseconds that the machine slept, and that a test set the clocks ahead, all in all. Neither took any time.
static SLEPT: AtomicU64 = AtomicU64::new(0);
static AHEAD: AtomicU64 = AtomicU64::new(0);

/// The value at which the performance counter is held, or [`NOT_HELD`].
static HELD: AtomicI64 = AtomicI64::new(NOT_HELD);
const NOT_HELD: i64 = i64::MIN;

/// The machine slept for so long.
pub fn slept(milliseconds: u64) {
    SLEPT.fetch_add(milliseconds, Ordering::SeqCst);
}

/// Sets the clocks ahead by so much, for waits as well.
pub fn advance(milliseconds: u64) {
    AHEAD.fetch_add(milliseconds, Ordering::SeqCst);
}

/// Stops the performance counter of drivers, or lets it go on.
pub fn hold_counter(hold: bool) {
    HELD.store(if hold { nt::performance_counter().0 } else { NOT_HELD }, Ordering::SeqCst);
}

/// The time in which waits run: not while the machine sleeps. In units of 100 ns.
fn awake() -> u64 {
    let (value, ticks) = nt::performance_counter();
    let units = i128::from(value) * i128::from(UNITS) * 1_000 / i128::from(ticks.max(1));
    let now = u64::try_from(units).unwrap_or_default();
    now.saturating_add(AHEAD.load(Ordering::SeqCst).saturating_mul(UNITS))
}

/// STATUS_TIMEOUT (ntstatus.h).
const TIMEOUT: NtStatus = nt::status(0x102);

/// The longest that a wait takes to see that a test has set the clocks ahead, in units of 100 ns.
const STEP: u64 = 20 * UNITS;

/// A wait of so many units of 100 ns, in steps: `wait` is one of Wine's.
pub fn wait(units: u64, wait: impl Fn(&i64) -> NtStatus) -> NtStatus {
    let due = awake().saturating_add(units);
    loop {
        let left = due.saturating_sub(awake());
        let step = left.min(STEP);
        let status = wait(&step.cast_signed().wrapping_neg());
        if status != TIMEOUT || left <= STEP {
            return status;
        }
    }
}

/// KeQueryPerformanceCounter, which Wine has in hal.dll only.
pub unsafe extern "system" fn performance_counter(frequency: *mut i64) -> i64 {
    let (value, ticks) = nt::performance_counter();
    if !frequency.is_null() {
        // SAFETY: not null, and then the driver promises a variable.
        unsafe { frequency.write(ticks) };
    }
    let held = HELD.load(Ordering::SeqCst);
    let value = if held == NOT_HELD { value } else { held };
    let skipped = SLEPT.load(Ordering::SeqCst).saturating_add(AHEAD.load(Ordering::SeqCst));
    let skipped = i128::from(skipped) * i128::from(ticks) / 1_000;
    value.saturating_add(i64::try_from(skipped).unwrap_or(i64::MAX))
}

/// KeQueryInterruptTime, of which Wine's counts milliseconds.
pub extern "system" fn interrupt_time() -> u64 {
    awake().saturating_add(SLEPT.load(Ordering::SeqCst).saturating_mul(UNITS))
}
