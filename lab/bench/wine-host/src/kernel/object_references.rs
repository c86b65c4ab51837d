//! The references of objects that the lab serves: driver objects and callback objects. Wine serves others.

#![expect(unsafe_code, reason = "calls functions of Wine")]

use crate::{
    kernel::{callbacks, driver_end, driver_object, irql},
    nt::{DISPATCH_LEVEL, Pointer},
    violation::catch_panic,
};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn ObfReferenceObject(object: Pointer) -> isize;
    fn ObfDereferenceObject(object: Pointer) -> isize;
}

/// Implements ObfReferenceObject.
pub unsafe extern "system" fn reference(object: Pointer) -> isize {
    let references = catch_panic("ObfReferenceObject", None, || {
        irql::check("ObfReferenceObject", DISPATCH_LEVEL);
        driver_object::with_state(object.addr(), |state| {
            state.references += 1;
            isize::try_from(state.references).unwrap_or(isize::MAX)
        })
    });
    // SAFETY: the arguments are the driver's own.
    references.unwrap_or_else(|| unsafe { ObfReferenceObject(object) })
}

/// Implements ObfDereferenceObject.
pub unsafe extern "system" fn dereference(object: Pointer) -> isize {
    let left = catch_panic("ObfDereferenceObject", None, || {
        irql::check("ObfDereferenceObject", DISPATCH_LEVEL);
        callbacks::dereference(object).or_else(|| driver_end::dereference(object))
    });
    // SAFETY: the arguments are the driver's own.
    left.unwrap_or_else(|| unsafe { ObfDereferenceObject(object) })
}
