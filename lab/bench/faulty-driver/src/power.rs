//! The callback for `\Callback\PowerState`.

use crate::{
    kernel::{self, NtStatus, ObjectAttributes, Pointer, STATUS_SUCCESS, STATUS_UNSUCCESSFUL, Text, wide},
    processor,
};
use core::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicU32, Ordering},
};

static POWER_STATE: [u16; 21] = wide(b"\\Callback\\powerstate\0");
static OTHER: [u16; 16] = wide(b"\\Callback\\Other\0");

static OBJECT: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(ptr::null_mut());
static REGISTRATION: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(ptr::null_mut());

/// The number of calls; then arguments, IRQL and processor of the last one.
static SEEN: [AtomicU32; 5] = [const { AtomicU32::new(0) }; 5];

/// Opens the callback object.
pub fn find(other: bool) -> NtStatus {
    let name = Text::new(if other { &OTHER } else { &POWER_STATE });
    let mut object = ptr::null_mut();
    let attributes = ObjectAttributes::new(&name);
    // SAFETY: called at PASSIVE_LEVEL; the attributes are only read, and `object` is writable.
    let status = unsafe { kernel::ExCreateCallback(&raw mut object, &raw const attributes, 0, 1) };
    if status >= 0 {
        OBJECT.store(object, Ordering::SeqCst);
    }
    status
}

/// Registers with the object that `find` opened.
pub fn register() -> NtStatus {
    // SAFETY: called at PASSIVE_LEVEL; `find` opened the object, and the routine has the required type.
    let registration =
        unsafe { kernel::ExRegisterCallback(OBJECT.load(Ordering::SeqCst), changed, ptr::dangling_mut()) };
    REGISTRATION.store(registration, Ordering::SeqCst);
    if registration.is_null() { STATUS_UNSUCCESSFUL } else { STATUS_SUCCESS }
}

/// Unregisters and releases the object.
pub fn unregister() {
    let registration = REGISTRATION.swap(ptr::null_mut(), Ordering::SeqCst);
    if !registration.is_null() {
        // SAFETY: called at PASSIVE_LEVEL, once for a registration.
        unsafe { kernel::ExUnregisterCallback(registration) };
    }
    let object = OBJECT.swap(ptr::null_mut(), Ordering::SeqCst);
    if !object.is_null() {
        // SAFETY: ExCreateCallback returned this reference, which is released once.
        unsafe { kernel::ObfDereferenceObject(object) };
    }
}

pub fn report() -> [u32; 5] {
    SEEN.each_ref().map(|seen| seen.load(Ordering::SeqCst))
}

unsafe extern "system" fn changed(_context: Pointer, first: Pointer, second: Pointer) {
    let [calls, seen @ ..] = &SEEN;
    calls.fetch_add(1, Ordering::SeqCst);
    let argument = |value: Pointer| u32::try_from(value.addr()).unwrap_or(u32::MAX);
    let values = [argument(first), argument(second), processor::level(), processor::current()];
    for (seen, value) in seen.iter().zip(values) {
        seen.store(value, Ordering::SeqCst);
    }
}
