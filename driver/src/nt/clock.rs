//! Clocks of the kernel.

use engine::Duration100ns;
use interrupt_path::clock::ticks;
use wdk_sys::LARGE_INTEGER;
use wdk_sys::ntddk::{KeDelayExecutionThread, KeQueryPerformanceCounter};

/// KernelMode (wdm.h).
const KERNEL_MODE: i8 = 0;

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

/// Lets this thread wait.
///
/// # IRQL
/// At most APC_LEVEL.
pub fn pause(duration: Duration100ns) {
    // A negative time is relative.
    let mut time = LARGE_INTEGER { QuadPart: i64::try_from(duration.0).unwrap_or(i64::MAX).wrapping_neg() };
    // SAFETY: the time is only read
    let _ = unsafe { KeDelayExecutionThread(KERNEL_MODE, 0, &raw mut time) };
}

/// Returns the time since an arbitrary start.
///
/// # IRQL
/// Any.
pub fn now() -> Duration100ns {
    ticks().duration(frequency())
}
