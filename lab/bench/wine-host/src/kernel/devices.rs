//! Device objects: checks their creation and the order of their deletion.

#![expect(unsafe_code, reason = "reads what the driver points to, and hands calls on to Wine")]

use crate::{
    kernel::{call_stack, driver_object, irql, work_items},
    nt::{self, APC_LEVEL, NtStatus, Pointer, UnicodeString},
    violation::{self, catch_panic},
};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn IoCreateDevice(
        driver: Pointer,
        extension: u32,
        name: *const UnicodeString,
        kind: u32,
        characteristics: u32,
        exclusive: u8,
        device: *mut Pointer,
    ) -> NtStatus;
    fn IoDeleteDevice(device: Pointer);
}

/// FILE_DEVICE_SECURE_OPEN (wdm.h).
const SECURE_OPEN: u32 = 0x100;

/// Implements IoCreateDevice.
pub unsafe extern "system" fn create(
    driver: Pointer,
    extension: u32,
    name: *const UnicodeString,
    kind: u32,
    characteristics: u32,
    exclusive: u8,
    device: *mut Pointer,
) -> NtStatus {
    catch_panic("IoCreateDevice", nt::UNSUCCESSFUL, || {
        irql::check("IoCreateDevice", APC_LEVEL);
        if call_stack::fails("IoCreateDevice") {
            return nt::INSUFFICIENT_RESOURCES;
        }
        // SAFETY: null, or the driver must pass a valid string.
        let text = unsafe { nt::text(name) };
        if !text.is_empty() && characteristics & SECURE_OPEN == 0 {
            violation::other(format!("any user can open {text}\\x: IoCreateDevice without FILE_DEVICE_SECURE_OPEN"));
        }
        driver_object::device_created(driver);
        // SAFETY: the arguments are the driver's own.
        unsafe { IoCreateDevice(driver, extension, name, kind, characteristics, exclusive, device) }
    })
}

/// Implements IoDeleteDevice.
pub unsafe extern "system" fn delete(device: Pointer) {
    catch_panic("IoDeleteDevice", (), || {
        irql::check("IoDeleteDevice", APC_LEVEL);
        work_items::device_deleted(device);
    });
    // SAFETY: the arguments are the driver's own.
    unsafe { IoDeleteDevice(device) };
}
