//! Takes over a driver when the loader maps it, and removes it when it is unloaded.
//!
//! The loader calls the notification before the first instruction of the driver runs.

#![expect(unsafe_code, reason = "reads and changes the image of a driver")]

use crate::{
    cpu::instruction_scan::{self, Replaced},
    kernel::{driver_object, instructions, irql_checked, loaded_images, remains},
    loader::{imports, pe::Image},
    nt,
    nt::{NtStatus, Pointer, UnicodeString},
    state::{images::LoadedImage, machine::MACHINE},
    violation::{self, catch_panic},
};
use std::{collections::BTreeMap, ptr, sync::atomic::Ordering};

/// The driver that loads the lab; it is not taken over.
const SHIM: &str = "shim.sys";

/// LDR_DLL_NOTIFICATION_DATA, which is the same for both reasons.
#[repr(C)]
struct Notification {
    flags: u32,
    path: *const UnicodeString,
    name: *const UnicodeString,
    base: *mut u8,
    size: u32,
}

/// LDR_DLL_NOTIFICATION_REASON_LOADED and _UNLOADED.
const MAPPED: u32 = 1;
const UNMAPPED: u32 = 2;

type Callback = unsafe extern "system" fn(u32, *const Notification, Pointer);

#[link(name = "ntdll.dll", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn LdrRegisterDllNotification(flags: u32, callback: Callback, context: Pointer, cookie: *mut Pointer) -> NtStatus;
    fn LdrUnregisterDllNotification(cookie: Pointer) -> NtStatus;
}

/// Registers for the notifications of the loader.
pub fn start() -> NtStatus {
    let mut cookie = ptr::null_mut();
    // SAFETY: the callback has the right type and stays valid until `stop`; the cookie is writable.
    let status = unsafe { LdrRegisterDllNotification(0, on_notification, ptr::null_mut(), &raw mut cookie) };
    MACHINE.loader.notification.store(cookie, Ordering::SeqCst);
    status
}

pub fn stop() {
    let cookie = MACHINE.loader.notification.swap(ptr::null_mut(), Ordering::SeqCst);
    if !cookie.is_null() {
        // SAFETY: the cookie is from `start`, and is used once.
        unsafe { LdrUnregisterDllNotification(cookie) };
    }
}

unsafe extern "system" fn on_notification(reason: u32, notification: *const Notification, _context: Pointer) {
    catch_panic("a notification of the loader", (), || {
        // SAFETY: the loader passes a valid pointer.
        let notification = unsafe { &*notification };
        // SAFETY: it contains a valid name.
        let name = unsafe { nt::text(notification.name) };
        let size = usize::try_from(notification.size).unwrap_or_default();
        match reason {
            // SAFETY: the loader has mapped the image and runs no code of it yet.
            MAPPED => unsafe { take_over(name, notification.base, size) },
            UNMAPPED => unloaded(notification.base.addr()),
            _ => {}
        }
    });
}

/// Replaces the imports that the lab serves, and the instructions that the model executes and that do not fault.
///
/// # Safety
/// The image is mapped at `base`, and no code of it runs.
unsafe fn take_over(name: String, base: *mut u8, size: usize) {
    let start = base.expose_provenance();
    // SAFETY: the loader has mapped that much, and no other thread writes to it before this returns.
    let bytes = unsafe { std::slice::from_raw_parts(base.cast_const(), size) };
    let Some(image) = Image::new(bytes).filter(Image::is_foreign_driver) else { return };
    if name.eq_ignore_ascii_case(SHIM) {
        return;
    }
    let imports = image.imports();
    let instructions = instructions_to_replace(&image);
    let mut replaced = 0_u32;
    for import in &imports {
        if let Some(address) = imports::find(&import.name) {
            // SAFETY: the import slot is inside the image.
            let slot = unsafe { base.add(import.slot) };
            // SAFETY: the slot is the loader's, which has already filled it.
            unsafe { nt::write_code(slot, &address.to_le_bytes()) };
            replaced += 1;
        } else if let Some(wrong) = imports::wrong_with_wine(&import.module, &import.name) {
            nt::print(&format!("{name} imports {}, which in Wine is {wrong}", import.name));
        } else if !irql_checked::AT_ANY_IRQL.contains(&&*import.name) {
            violation::other(format!(
                "{name} imports {}, which has an IRQL limit that the lab does not know",
                import.name
            ));
        }
    }
    for offset in instructions.keys() {
        // SAFETY: the instruction is inside the image.
        let at = unsafe { base.add(*offset) };
        // SAFETY: all these instructions are two bytes long, and the exception handler knows the address before the
        // driver runs.
        unsafe { nt::write_code(at, &instructions::UD2) };
    }
    nt::print(&format!(
        "{name}: {replaced} of {} imports and {} instructions replaced",
        imports.len(),
        instructions.len()
    ));
    let instructions = instructions.into_iter().map(|(offset, what)| (start + offset, what)).collect();
    let can_reserve = imports.iter().any(|import| import.name == "HalAllocateHardwareCounters");
    let guarded = image.guarded().into_iter().map(|scope| start + scope.start..start + scope.end).collect();
    let pageable = image.pageable().into_iter().map(|(offset, length)| start + offset..start + offset + length);
    let pageable = pageable.collect();
    let loaded = LoadedImage { name, addresses: start..start + size, instructions, can_reserve, guarded, pageable };
    loaded_images::add(loaded);
}

/// Returns the instructions to replace in the image, by their offsets.
fn instructions_to_replace(image: &Image<'_>) -> BTreeMap<usize, Replaced> {
    let bounds = image.function_bounds();
    let sections = image.code().into_iter().filter_map(|(start, length)| Some((start, image.bytes(start, length)?)));
    let mut all = BTreeMap::new();
    for (start, code) in sections {
        let starts: Vec<usize> = bounds.iter().filter_map(|bound| bound.checked_sub(start)).collect();
        let found = instruction_scan::find(code, &starts).into_iter();
        all.extend(found.map(|(offset, what)| (start + offset, what)));
    }
    all
}

fn unloaded(base: usize) {
    let Some(image) = loaded_images::remove(base) else { return };
    remains::check(&image.addresses);
    driver_object::image_unloaded(&image.addresses);
    nt::print(&format!("{} is unloaded", image.name));
}
