//! The reservation of the counters.

use crate::kernel::{self, NtStatus, Pointer};
use core::{
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// What was reserved, or null.
static SET: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(ptr::null_mut());

/// Reserves all counters.
pub fn reserve() -> NtStatus {
    let mut set: Pointer = ptr::null_mut();
    // SAFETY: PASSIVE_LEVEL; no list means everything, and the set may be written.
    let status = unsafe { kernel::HalAllocateHardwareCounters(ptr::null_mut(), 0, ptr::null_mut(), &raw mut set) };
    if !set.is_null() {
        SET.store(set, Ordering::SeqCst);
    }
    status
}

/// Gives them back.
pub fn free() {
    let set = SET.swap(ptr::null_mut(), Ordering::SeqCst);
    if !set.is_null() {
        // SAFETY: PASSIVE_LEVEL; reserved, and given back once.
        unsafe { kernel::HalFreeHardwareCounters(set) };
    }
}
