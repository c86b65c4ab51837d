//! Callback objects of the executive: `\Callback\PowerState` and those of drivers. Wine's call no routine.

#![expect(unsafe_code, reason = "reads and writes what the driver points to, and calls functions of the driver")]

use crate::{
    kernel::{call_stack, irql, stepping},
    lock::lock,
    nt::{self, APC_LEVEL, DISPATCH_LEVEL, NtStatus, Pointer, UnicodeString},
    state::{
        callbacks::{CallbackObject, CallbackRegistration, CallbackRoutine},
        machine::MACHINE,
        registry::RemoveError,
    },
    violation::{self, catch_panic},
};
use bench_protocol::StepEntry;
use std::{ops::Range, ptr};

/// The first object, `\Callback\PowerState`. Addresses of objects are not mapped.
const FIRST_OBJECT: usize = 0x7FFF_0B1E_0000_0000;
const STEP: usize = 0x100;

/// OBJ_CASE_INSENSITIVE.
const CASE_INSENSITIVE: u32 = 0x40;

/// OBJECT_ATTRIBUTES (ntdef.h, x64).
#[repr(C)]
pub struct ObjectAttributes {
    length: u32,
    root: Pointer,
    name: *const UnicodeString,
    attributes: u32,
    security: [Pointer; 2],
}

const _: () = assert!(size_of::<ObjectAttributes>() == 0x30);

fn index_of(object: Pointer) -> Option<usize> {
    let distance = object.addr().checked_sub(FIRST_OBJECT)?;
    distance.is_multiple_of(STEP).then_some(distance / STEP)
}

fn names_match(name: &str, other: &str, attributes: u32) -> bool {
    name == other || attributes & CASE_INSENSITIVE != 0 && name.eq_ignore_ascii_case(other)
}

/// Calls `body` with the object at the address, if there is one.
fn with_object<T>(object: Pointer, body: impl FnOnce(&mut CallbackObject) -> T) -> Option<T> {
    lock(&MACHINE.kernel.callbacks.objects).get_mut(index_of(object)?).map(body)
}

/// Implements ExCreateCallback.
pub unsafe extern "system" fn create(
    object: *mut Pointer,
    attributes: *const ObjectAttributes,
    create: u8,
    _multiple: u8,
) -> NtStatus {
    catch_panic("ExCreateCallback", nt::UNSUCCESSFUL, || {
        irql::check("ExCreateCallback", APC_LEVEL);
        if call_stack::fails("ExCreateCallback") {
            return nt::INSUFFICIENT_RESOURCES;
        }
        // SAFETY: the driver promises attributes that can be read.
        let ObjectAttributes { length, root, name, attributes, .. } = unsafe { attributes.read() };
        // SAFETY: and they must contain a valid name.
        let name = unsafe { nt::text(name) };
        if usize::try_from(length) != Ok(size_of::<ObjectAttributes>()) || !root.is_null() {
            violation::other(format!("ExCreateCallback of {name} with attributes of {length} bytes, root {root:p}"));
            return nt::INVALID_PARAMETER;
        }
        let mut objects = lock(&MACHINE.kernel.callbacks.objects);
        let found = objects.iter().position(|known| !name.is_empty() && names_match(&known.name, &name, attributes));
        let index = match found {
            None if create == 0 => return nt::OBJECT_NAME_NOT_FOUND,
            None => {
                objects.push(CallbackObject { name, references: 0 });
                objects.len() - 1
            }
            Some(index) => index,
        };
        if let Some(object) = objects.get_mut(index) {
            object.references += 1;
        }
        // SAFETY: the driver must pass a writable variable.
        unsafe { object.write(ptr::without_provenance_mut(FIRST_OBJECT + index * STEP)) };
        nt::SUCCESS
    })
}

/// Releases a reference of a callback object. Returns `None` for other objects.
pub fn dereference(object: Pointer) -> Option<isize> {
    with_object(object, |known| {
        if known.references == 0 {
            violation::other(format!("ObfDereferenceObject of {}, to which no driver has a reference", known.name));
        }
        known.references = known.references.saturating_sub(1);
        isize::try_from(known.references).unwrap_or(isize::MAX)
    })
}

/// Implements ExRegisterCallback.
pub extern "system" fn register(object: Pointer, routine: CallbackRoutine, context: Pointer) -> Pointer {
    catch_panic("ExRegisterCallback", ptr::null_mut(), || {
        irql::check("ExRegisterCallback", APC_LEVEL);
        if call_stack::fails("ExRegisterCallback") {
            return ptr::null_mut();
        }
        if with_object(object, |known| known.references > 0) != Some(true) {
            violation::other(format!("ExRegisterCallback with {object:p}, to which no driver has a reference"));
            return ptr::null_mut();
        }
        let registered = CallbackRegistration { object: object.addr(), routine, context: context.expose_provenance() };
        ptr::without_provenance_mut(MACHINE.kernel.callbacks.registry.add(registered))
    })
}

/// Implements ExUnregisterCallback. Waits until no thread is in the routine.
pub extern "system" fn unregister(handle: Pointer) {
    catch_panic("ExUnregisterCallback", (), || {
        irql::check("ExUnregisterCallback", APC_LEVEL);
        match MACHINE.kernel.callbacks.registry.remove(handle.addr(), nt::current_thread()) {
            Ok(_) => {}
            Err(RemoveError::Unknown) => {
                violation::other(format!("ExUnregisterCallback of {handle:p}, which is not registered"));
            }
            Err(RemoveError::Reentrant) => {
                violation::other("ExUnregisterCallback inside the routine, which would wait for itself");
            }
        }
    });
}

/// Calls the routines that are registered with `\Callback\PowerState`, at DISPATCH_LEVEL, the highest level that
/// Windows allows.
pub fn notify_power(first: usize, second: usize) {
    let registry = &MACHINE.kernel.callbacks.registry;
    registry.call(nt::current_thread(), |CallbackRegistration { object, routine, context }| {
        if object != FIRST_OBJECT {
            return;
        }
        stepping::on_planned_processor(StepEntry::Power, || {
            let before = irql::set(DISPATCH_LEVEL);
            let arguments = [context, first, second, 0];
            // SAFETY: the driver registered this function with this context, and stays loaded while it runs.
            let call = || unsafe { stepping::call(StepEntry::Power, routine as *const (), arguments) };
            irql::run_at(DISPATCH_LEVEL, call);
            irql::set(before);
        });
    });
}

/// Reports and removes what an unloaded driver left behind.
pub fn image_unloaded(addresses: &Range<usize>) {
    if MACHINE.kernel.callbacks.registry.remove_where(|registered| registered.is_in(addresses)) > 0 {
        violation::other("a driver was unloaded that had registered a callback, with ExRegisterCallback");
    }
    if MACHINE.kernel.callbacks.registry.wait_until_idle(nt::HANG_LIMIT, |registered| registered.is_in(addresses)) {
        violation::other("a driver was unloaded while its callback ran, of ExRegisterCallback");
    }
    for object in &mut *lock(&MACHINE.kernel.callbacks.objects) {
        if std::mem::take(&mut object.references) > 0 {
            violation::other(format!("a driver was unloaded that had a reference of {}", object.name));
        }
    }
}
