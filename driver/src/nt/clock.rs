//! Clocks of the kernel.

use wdk_sys::LARGE_INTEGER;
use wdk_sys::ntddk::KeQueryPerformanceCounter;

/// Units of 100 ns in a second.
const UNITS: u128 = 10_000_000;

/// Returns the performance counter.
///
/// # IRQL
/// Any.
pub fn ticks() -> u64 {
    // SAFETY: the pointer is optional
    let ticks = unsafe { KeQueryPerformanceCounter(core::ptr::null_mut()) };
    // SAFETY: every bit pattern is a `QuadPart`
    unsafe { ticks.QuadPart }.cast_unsigned()
}

/// Returns the frequency of the performance counter in ticks per second, which never changes.
///
/// # IRQL
/// Any.
pub fn frequency() -> u64 {
    let mut frequency = LARGE_INTEGER { QuadPart: 0 };
    // SAFETY: the kernel may write to `frequency`
    unsafe { KeQueryPerformanceCounter(&raw mut frequency) };
    // SAFETY: every bit pattern is a `QuadPart`
    unsafe { frequency.QuadPart }.unsigned_abs().max(1)
}

/// Returns the time since an arbitrary start, in units of 100 ns.
///
/// # IRQL
/// Any.
pub fn now() -> u64 {
    let units = u128::from(ticks()) * UNITS / u128::from(frequency());
    u64::try_from(units).unwrap_or(u64::MAX)
}
