//! The configuration of hardware counters for thread profiling.

use crate::kernel::{self, HardwareCounter, NtStatus};
use core::ptr;

/// One more than Windows allows.
const MAX: usize = 17;

/// Configures the counters 0 to `count` - 1, or clears the configuration.
pub fn set(count: u32) -> NtStatus {
    let mut counters = [HardwareCounter::ZERO; MAX];
    for (index, counter) in (0..).zip(&mut counters) {
        counter.index = index;
    }
    let first = if count == 0 { ptr::null() } else { counters.as_ptr() };
    // SAFETY: called at PASSIVE_LEVEL; Windows refuses more counters than the array has.
    unsafe { kernel::KeSetHardwareCounterConfiguration(first, count) }
}

/// Asks for at most `most` counters, up to the size of the array. Returns the status, the number of configured
/// counters, and the sum of the indexes.
pub fn query(most: u32) -> [u32; 3] {
    let mut counters = [HardwareCounter::ZERO; MAX];
    let most = most.min(u32::try_from(MAX).unwrap_or_default());
    let mut count = 0;
    // SAFETY: called at PASSIVE_LEVEL; there is room for `most` counters, and `count` is writable.
    let status = unsafe { kernel::KeQueryHardwareCounterConfiguration(counters.as_mut_ptr(), most, &raw mut count) };
    let sum: u64 = counters.iter().map(|counter| counter.index).sum();
    [status.cast_unsigned(), count, u32::try_from(sum).unwrap_or(u32::MAX)]
}
