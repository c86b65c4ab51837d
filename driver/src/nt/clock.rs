//! Time.

use wdk_sys::LARGE_INTEGER;
use wdk_sys::ntddk::KeQueryPerformanceCounter;

/// Units of 100 ns in a second.
const UNITS: u128 = 10_000_000;

/// Time since some moment in the past, in units of 100 ns. Any IRQL.
pub fn now() -> u64 {
    let mut frequency = LARGE_INTEGER { QuadPart: 0 };
    // SAFETY: `frequency` may be written
    let ticks = unsafe { KeQueryPerformanceCounter(&raw mut frequency) };
    // SAFETY: every bit pattern is a `QuadPart`
    let ticks = unsafe { ticks.QuadPart };
    // SAFETY: every bit pattern is a `QuadPart`
    let frequency = unsafe { frequency.QuadPart };
    let units = u128::from(ticks.unsigned_abs()) * UNITS / u128::from(frequency.unsigned_abs().max(1));
    u64::try_from(units).unwrap_or(u64::MAX)
}
