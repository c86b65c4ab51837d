//! The system callback that announces sleep and wake.

use core::sync::atomic::{AtomicPtr, Ordering};

use wdk_sys::ntddk::{ExCreateCallback, ExRegisterCallback, ExUnregisterCallback, ObfDereferenceObject};
use wdk_sys::{
    NTSTATUS, OBJ_CASE_INSENSITIVE, OBJ_KERNEL_HANDLE, OBJECT_ATTRIBUTES, PCALLBACK_OBJECT, PVOID,
    STATUS_INSUFFICIENT_RESOURCES,
};

use super::irp::check;
use super::text::Text;

static NAME: Text<20> = Text::new("\\Callback\\PowerState");

#[expect(clippy::cast_possible_truncation, reason = "48 bytes")]
const ATTRIBUTES_LENGTH: u32 = size_of::<OBJECT_ATTRIBUTES>() as u32;

/// PO_CB_SYSTEM_STATE_LOCK (wdm.h): the first argument when the system leaves S0 or returns to it.
const SYSTEM_STATE_LOCK: usize = 3;

/// A change of the power state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The system is about to leave S0 and will lose its registers.
    Sleep,
    /// The system is back in S0.
    Wake,
}

/// Calls a function before and after every sleep, at DISPATCH_LEVEL or below.
pub struct PowerState {
    work: fn(Change),
    /// CALLBACK_OBJECT.
    object: AtomicPtr<core::ffi::c_void>,
    registration: AtomicPtr<core::ffi::c_void>,
}

impl PowerState {
    /// Creates an unregistered callback.
    pub const fn new(work: fn(Change)) -> Self {
        let (object, registration) = (AtomicPtr::new(core::ptr::null_mut()), AtomicPtr::new(core::ptr::null_mut()));
        Self { work, object, registration }
    }

    /// Registers the callback.
    ///
    /// # Errors
    /// The NTSTATUS of the call that failed; everything is undone.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn register(&'static self) -> Result<(), NTSTATUS> {
        let mut object: PCALLBACK_OBJECT = core::ptr::null_mut();
        let mut name = NAME.counted();
        let mut attributes = OBJECT_ATTRIBUTES {
            Length: ATTRIBUTES_LENGTH,
            RootDirectory: core::ptr::null_mut(),
            ObjectName: &raw mut name,
            Attributes: OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE,
            SecurityDescriptor: core::ptr::null_mut(),
            SecurityQualityOfService: core::ptr::null_mut(),
        };
        // SAFETY: the kernel may write to the object; the attributes and the name outlive the call. The callback exists
        // on every system.
        check(unsafe { ExCreateCallback(&raw mut object, &raw mut attributes, 0, 1) })?;
        self.object.store(object.cast(), Ordering::Release);
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: `called` expects a `PowerState`, and a static lives as long as the image
        let registration = unsafe { ExRegisterCallback(object, Some(called), context) };
        if registration.is_null() {
            self.unregister();
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
            unsafe { ExUnregisterCallback(registration) };
        }
        let object = self.object.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !object.is_null() {
            // SAFETY: the reference from ExCreateCallback, once
            unsafe { ObfDereferenceObject(object) };
        }
    }
}

/// Entry point for the kernel.
///
/// # IRQL
/// At most DISPATCH_LEVEL.
unsafe extern "C" fn called(context: PVOID, argument1: PVOID, argument2: PVOID) {
    // SAFETY: `register` passed a static
    let state = unsafe { &*context.cast::<PowerState>() };
    if argument1.addr() == SYSTEM_STATE_LOCK {
        (state.work)(if argument2.is_null() { Change::Sleep } else { Change::Wake });
    }
}
