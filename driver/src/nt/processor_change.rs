//! The callback for processors that are added to the running system.

use core::sync::atomic::{AtomicPtr, Ordering};

use pmu::ProcessorIndex;
use wdk_sys::ntddk::{KeDeregisterProcessorChangeCallback, KeRegisterProcessorChangeCallback};
use wdk_sys::{
    KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT, KE_PROCESSOR_CHANGE_NOTIFY_STATE, NTSTATUS, PNTSTATUS, PVOID,
    STATUS_INSUFFICIENT_RESOURCES,
};

/// A step of the addition of a processor.
#[derive(Clone, Copy)]
pub enum Change {
    /// A processor is about to become active.
    Begins,
    /// The processor with this index is active.
    Added(ProcessorIndex),
    /// The processor does not become active.
    Failed,
}

/// Calls a function at PASSIVE_LEVEL for each step of the addition of a processor.
pub struct ProcessorChange {
    work: fn(Change),
    registration: AtomicPtr<core::ffi::c_void>,
}

impl ProcessorChange {
    /// Creates an unregistered callback.
    pub const fn new(work: fn(Change)) -> Self {
        Self { work, registration: AtomicPtr::new(core::ptr::null_mut()) }
    }

    /// Registers the callback.
    ///
    /// # Errors
    /// STATUS_INSUFFICIENT_RESOURCES; everything is undone.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn register(&'static self) -> Result<(), NTSTATUS> {
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: `called` expects a `ProcessorChange`, and a static lives as long as the image
        let registration = unsafe { KeRegisterProcessorChangeCallback(Some(called), context, 0) };
        if registration.is_null() {
            return Err(STATUS_INSUFFICIENT_RESOURCES);
        }
        self.registration.store(registration, Ordering::Release);
        Ok(())
    }

    /// Unregisters the callback, and waits for a call in progress. Repeated calls do nothing.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn unregister(&self) {
        let registration = self.registration.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !registration.is_null() {
            // SAFETY: the registration from `register`, once; the kernel waits for a call in progress
            unsafe { KeDeregisterProcessorChangeCallback(registration) };
        }
    }
}

/// Entry point for the kernel.
///
/// # IRQL
/// PASSIVE_LEVEL.
unsafe extern "C" fn called(context: PVOID, change: *mut KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT, _status: PNTSTATUS) {
    // SAFETY: `register` passed a static
    let callback = unsafe { &*context.cast::<ProcessorChange>() };
    // SAFETY: the kernel passes a structure that lives during the call
    let change = unsafe { &*change };
    (callback.work)(match change.State {
        KE_PROCESSOR_CHANGE_NOTIFY_STATE::KeProcessorAddStartNotify => Change::Begins,
        KE_PROCESSOR_CHANGE_NOTIFY_STATE::KeProcessorAddCompleteNotify => {
            Change::Added(ProcessorIndex::new(change.NtNumber))
        }
        KE_PROCESSOR_CHANGE_NOTIFY_STATE::KeProcessorAddFailureNotify => Change::Failed,
        _ => return,
    });
}
