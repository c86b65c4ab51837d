//! Clocks of the kernel.

use engine::{Duration100ns, Ticks};
use wdk_sys::LARGE_INTEGER;
use wdk_sys::ntddk::KeQueryPerformanceCounter;

/// Returns the performance counter.
///
/// # IRQL
/// Any.
pub fn ticks() -> Ticks {
    // SAFETY: the pointer is optional
    let ticks = unsafe { KeQueryPerformanceCounter(core::ptr::null_mut()) };
    // SAFETY: every bit pattern is a `QuadPart`
    Ticks(unsafe { ticks.QuadPart }.cast_unsigned())
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

/// Returns the time since an arbitrary start.
///
/// # IRQL
/// Any.
pub fn now() -> Duration100ns {
    ticks().duration(frequency())
}
