//! The clocks. They continue during sleep, and a test can advance them.

#![expect(unsafe_code, reason = "writes what the driver points to")]

use crate::{
    nt::{self, NtStatus},
    state::machine::MACHINE,
};
use std::cell::Cell;

/// 100 ns units per millisecond.
const UNITS: u64 = 10_000;

thread_local! {
    /// The performance counter and the time-stamp counter at the beginning of the interrupt that the thread serves by
    /// script.
    static INTERRUPTED: Cell<Option<(i64, u64)>> = const { Cell::new(None) };
}

/// Runs the handler of an interrupt. While time is scripted, it takes none: else a busy machine would exhaust the
/// handler's budget.
pub fn during_interrupt(handler: impl FnOnce()) {
    INTERRUPTED.set(MACHINE.time_mode.is_scripted().then(|| (nt::performance_counter().0, nt::time_stamp())));
    handler();
    INTERRUPTED.set(None);
}

/// Returns the time-stamp counter of drivers.
pub fn time_stamp() -> u64 {
    INTERRUPTED.get().map_or_else(nt::time_stamp, |(_, stamp)| stamp)
}

/// Stops the performance counter and the waits of drivers, or lets them continue.
pub fn hold_clocks(hold: bool) {
    MACHINE.clock_offsets.hold_counter(hold.then(|| nt::performance_counter().0));
}

/// Returns the time in units of 100 ns, without sleep. Waits run by this clock.
fn unbiased() -> u64 {
    let (value, ticks) = nt::performance_counter();
    let value = MACHINE.clock_offsets.held_counter().unwrap_or(value);
    let units = i128::from(value) * i128::from(UNITS) * 1_000 / i128::from(ticks.max(1));
    let now = u64::try_from(units).unwrap_or_default();
    now.saturating_add(MACHINE.clock_offsets.advanced().saturating_mul(UNITS))
}

/// STATUS_TIMEOUT (ntstatus.h).
const TIMEOUT: NtStatus = nt::status(0x102);

/// The longest delay, in units of 100 ns, until a wait notices that a test has advanced the clocks.
const STEP: u64 = 20 * UNITS;

/// Waits for `units` of 100 ns in steps. `wait` calls a function of Wine with a relative timeout.
pub fn wait(units: u64, wait: impl Fn(&i64) -> NtStatus) -> NtStatus {
    let due = unbiased().saturating_add(units);
    loop {
        let left = due.saturating_sub(unbiased());
        let step = left.min(STEP);
        let status = wait(&step.cast_signed().wrapping_neg());
        if status != TIMEOUT || left <= STEP {
            return status;
        }
    }
}

/// Implements KeQueryPerformanceCounter, which Wine has only in hal.dll.
pub unsafe extern "system" fn performance_counter(frequency: *mut i64) -> i64 {
    let (value, ticks) = nt::performance_counter();
    if !frequency.is_null() {
        // SAFETY: the pointer is not null, so it must point to a variable of the driver.
        unsafe { frequency.write(ticks) };
    }
    moved(value, ticks)
}

/// Returns the performance counter of drivers.
pub fn counter() -> u64 {
    let (value, ticks) = nt::performance_counter();
    moved(value, ticks).cast_unsigned()
}

/// Returns what the performance counter of drivers is when that of Wine is `value`, with `ticks` per second.
fn moved(value: i64, ticks: i64) -> i64 {
    let interrupted = INTERRUPTED.get().map(|(counter, _)| counter);
    let value = MACHINE.clock_offsets.held_counter().or(interrupted).unwrap_or(value);
    let skipped = MACHINE.clock_offsets.slept().saturating_add(MACHINE.clock_offsets.advanced());
    let skipped = i128::from(skipped) * i128::from(ticks) / 1_000;
    value.saturating_add(i64::try_from(skipped).unwrap_or(i64::MAX))
}

/// Implements KeQueryInterruptTime, which has a resolution of milliseconds in Wine.
pub extern "system" fn interrupt_time() -> u64 {
    unbiased().saturating_add(MACHINE.clock_offsets.slept().saturating_mul(UNITS))
}
