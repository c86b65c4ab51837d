//! The system callback that tells when the machine is about to sleep, and when it is awake.

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

/// PO_CB_SYSTEM_STATE_LOCK (wdm.h): the first argument when the system leaves S0, or is back.
const SYSTEM_STATE_LOCK: usize = 3;

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The system is about to leave S0: registers will be lost.
    Sleep,
    /// It is back.
    Wake,
}

/// Calls a function at DISPATCH_LEVEL at most, before every sleep and after it.
pub struct PowerState {
    work: fn(Change),
    /// CALLBACK_OBJECT.
    object: AtomicPtr<core::ffi::c_void>,
    registration: AtomicPtr<core::ffi::c_void>,
}

impl PowerState {
    /// Not registered.
    pub const fn new(work: fn(Change)) -> Self {
        let (object, registration) = (AtomicPtr::new(core::ptr::null_mut()), AtomicPtr::new(core::ptr::null_mut()));
        Self { work, object, registration }
    }

    /// Registers. PASSIVE_LEVEL.
    ///
    /// # Errors
    /// The NTSTATUS of what failed; nothing is left behind.
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
        // SAFETY: the object may be written; the attributes and the name outlive the call. It exists on every system.
        check(unsafe { ExCreateCallback(&raw mut object, &raw mut attributes, 0, 1) })?;
        self.object.store(object.cast(), Ordering::Release);
        let context = core::ptr::from_ref(self).cast_mut().cast();
        // SAFETY: `called` takes a `PowerState`, and a static lives as long as the image
        let registration = unsafe { ExRegisterCallback(object, Some(called), context) };
        if registration.is_null() {
            self.unregister();
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
            unsafe { ExUnregisterCallback(registration) };
        }
        let object = self.object.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !object.is_null() {
            // SAFETY: the reference that ExCreateCallback gave, once
            unsafe { ObfDereferenceObject(object) };
        }
    }
}

/// The kernel's call, at DISPATCH_LEVEL at most.
unsafe extern "C" fn called(context: PVOID, argument1: PVOID, argument2: PVOID) {
    // SAFETY: `register` gave a static
    let state = unsafe { &*context.cast::<PowerState>() };
    if argument1.addr() == SYSTEM_STATE_LOCK {
        (state.work)(if argument2.is_null() { Change::Sleep } else { Change::Wake });
    }
}
