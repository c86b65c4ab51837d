//! The callback that tells of processors that are added to the running system.

use core::sync::atomic::{AtomicPtr, Ordering};

use pmu::ProcessorIndex;
use wdk_sys::ntddk::{KeDeregisterProcessorChangeCallback, KeRegisterProcessorChangeCallback};
use wdk_sys::{
    KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT, KE_PROCESSOR_CHANGE_NOTIFY_STATE, NTSTATUS, PNTSTATUS, PVOID,
    STATUS_INSUFFICIENT_RESOURCES,
};

/// Calls a function at PASSIVE_LEVEL with the index of each processor that was added, when it is active.
pub struct ProcessorChange {
    work: fn(ProcessorIndex),
    registration: AtomicPtr<core::ffi::c_void>,
}

impl ProcessorChange {
    /// Not registered.
    pub const fn new(work: fn(ProcessorIndex)) -> Self {
        Self { work, registration: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Registers. PASSIVE_LEVEL.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES; nothing is left behind.
    pub fn register(&'static self) -> Result<(), NTSTATUS> {
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: `called` takes a `ProcessorChange`, and a static lives as long as the image
        let registration = unsafe { KeRegisterProcessorChangeCallback(Some(called), context, 0) };
        if registration.is_null() {
            return Err(STATUS_INSUFFICIENT_RESOURCES);
        }
        self.registration.store(registration, Ordering::Release);
        Ok(())
    }

    /// Calls no more when it comes back. PASSIVE_LEVEL. Again does nothing.
    pub fn unregister(&self) {
        let registration = self.registration.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !registration.is_null() {
            // SAFETY: what `register` got, once; it waits for a call that is in progress
            unsafe { KeDeregisterProcessorChangeCallback(registration) };
        }
    }
}

/// The kernel's call, at PASSIVE_LEVEL.
unsafe extern "C" fn called(context: PVOID, change: *mut KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT, _status: PNTSTATUS) {
    // SAFETY: `register` gave a static
    let callback = unsafe { &*context.cast::<ProcessorChange>() };
    // SAFETY: the kernel lends it for the time of the call
    let change = unsafe { &*change };
    if change.State == KE_PROCESSOR_CHANGE_NOTIFY_STATE::KeProcessorAddCompleteNotify {
        (callback.work)(ProcessorIndex::new(change.NtNumber));
    }
}
