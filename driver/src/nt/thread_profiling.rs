//! Windows' thread profiling: the counters that the kernel reads when it switches threads.
//!
//! A thread that has called EnableThreadProfiling gets the differences of the configured counters while it runs.
//! Windows programs no counter and reserves none: it reads what a driver has configured, by RDPMC.

use wdk_sys::ntddk::KeSetHardwareCounterConfiguration;
use wdk_sys::{_HARDWARE_COUNTER_TYPE, HARDWARE_COUNTER, MAX_HW_COUNTERS, NTSTATUS, STATUS_INVALID_PARAMETER};

use super::irp::check;

/// Configures the counters with the indexes below `count`, or none. The entry i is counter i, so that a bit of the mask
/// that a thread passes to EnableThreadProfiling means the same counter whether Windows takes it for a position or for
/// an index.
///
/// # Errors
/// The kernel's NTSTATUS: STATUS_WMI_ALREADY_ENABLED if counters are configured already, or if a thread profiles.
///
/// # IRQL
/// At most APC_LEVEL.
pub fn configure(count: u32) -> Result<(), NTSTATUS> {
    if count > MAX_HW_COUNTERS {
        return Err(STATUS_INVALID_PARAMETER);
    }
    let mut counters = [HARDWARE_COUNTER { Type: _HARDWARE_COUNTER_TYPE::PMCCounter, Reserved: 0, Index: 0 };
        MAX_HW_COUNTERS as usize];
    for (counter, index) in counters.iter_mut().zip(0..) {
        counter.Index = index;
    }
    // SAFETY: the kernel reads `count` of the counters, which is at most their number, and keeps no reference to them
    check(unsafe { KeSetHardwareCounterConfiguration(counters.as_mut_ptr(), count) })
}
