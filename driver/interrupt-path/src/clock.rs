//! The clock of the samples.

use engine::Ticks;
use wdk_sys::ntddk::KeQueryPerformanceCounter;

/// Returns the performance counter.
///
/// # IRQL
/// Any.
#[must_use]
pub fn ticks() -> Ticks {
    // SAFETY: the pointer is optional
    let ticks = unsafe { KeQueryPerformanceCounter(core::ptr::null_mut()) };
    // SAFETY: every bit pattern is a `QuadPart`
    Ticks(unsafe { ticks.QuadPart }.cast_unsigned())
}
