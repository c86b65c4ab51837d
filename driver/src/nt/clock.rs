//! Time.

use wdk_sys::LARGE_INTEGER;
use wdk_sys::ntddk::KeQueryPerformanceCounter;

/// Units of 100 ns in a second.
const UNITS: u128 = 10_000_000;

/// The performance counter. Any IRQL.
pub fn ticks() -> u64 {
    // SAFETY: the pointer is optional
    let ticks = unsafe { KeQueryPerformanceCounter(core::ptr::null_mut()) };
    // SAFETY: every bit pattern is a `QuadPart`
    unsafe { ticks.QuadPart }.cast_unsigned()
}

/// Its ticks in a second, which never change. Any IRQL.
pub fn frequency() -> u64 {
    let mut frequency = LARGE_INTEGER { QuadPart: 0 };
    // SAFETY: `frequency` may be written
    unsafe { KeQueryPerformanceCounter(&raw mut frequency) };
    // SAFETY: every bit pattern is a `QuadPart`
    unsafe { frequency.QuadPart }.unsigned_abs().max(1)
}

/// Time since some moment in the past, in units of 100 ns. Any IRQL.
pub fn now() -> u64 {
    let units = u128::from(ticks()) * UNITS / u128::from(frequency());
    u64::try_from(units).unwrap_or(u64::MAX)
}
