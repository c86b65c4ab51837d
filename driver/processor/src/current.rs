//! The current processor.

use pmu::ProcessorIndex;
use wdk_sys::ntddk::KeGetCurrentProcessorNumberEx;

/// Returns the index of the current processor over all groups. Below DISPATCH_LEVEL the thread may have moved when the
/// function returns.
///
/// # IRQL
/// Any.
#[must_use]
pub fn current_processor() -> ProcessorIndex {
    // SAFETY: the pointer is optional
    ProcessorIndex::new(unsafe { KeGetCurrentProcessorNumberEx(core::ptr::null_mut()) })
}
