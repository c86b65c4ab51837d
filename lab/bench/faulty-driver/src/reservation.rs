//! The reservation of the counters with the HAL.

use crate::kernel::{self, NtStatus, Pointer, STATUS_SUCCESS};
use core::{
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// The handle of the reservation, or null.
static SET: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(ptr::null_mut());

/// Reserves all counters.
pub fn reserve() -> NtStatus {
    let mut set: Pointer = ptr::null_mut();
    // SAFETY: called at PASSIVE_LEVEL; no list means all counters, and `set` is writable.
    let status = unsafe { kernel::HalAllocateHardwareCounters(ptr::null_mut(), 0, ptr::null_mut(), &raw mut set) };
    if !set.is_null() {
        SET.store(set, Ordering::SeqCst);
    }
    status
}

/// Frees the reservation, if there is one. If the HAL refuses, it stays.
pub fn free() -> NtStatus {
    let set = SET.load(Ordering::SeqCst);
    if set.is_null() {
        return STATUS_SUCCESS;
    }
    // SAFETY: called at PASSIVE_LEVEL; the set is reserved.
    let status = unsafe { kernel::HalFreeHardwareCounters(set) };
    if status >= 0 {
        SET.store(ptr::null_mut(), Ordering::SeqCst);
    }
    status
}
