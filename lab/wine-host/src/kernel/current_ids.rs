//! The current process and thread. During an interrupt these are the process and thread of the interrupted place.

#![expect(unsafe_code, reason = "calls Wine's functions")]

use crate::nt::Pointer;
use bench_protocol::Place;
use std::{cell::Cell, ptr};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn PsGetCurrentProcessId() -> Pointer;
    fn PsGetCurrentThreadId() -> Pointer;
}

thread_local! {
    static INTERRUPTED: Cell<Option<Place>> = const { Cell::new(None) };
}

/// Runs `body` as an interrupt of `place`.
pub fn with_interrupted(place: Place, body: impl FnOnce()) {
    INTERRUPTED.set(Some(place));
    body();
    INTERRUPTED.set(None);
}

fn id(of: impl Fn(Place) -> u32) -> Option<Pointer> {
    let id = usize::try_from(of(INTERRUPTED.get()?)).ok()?;
    Some(ptr::without_provenance_mut(id))
}

/// Implements PsGetCurrentProcessId.
pub extern "system" fn process() -> Pointer {
    // SAFETY: the function has no preconditions.
    id(|place| place.process).unwrap_or_else(|| unsafe { PsGetCurrentProcessId() })
}

/// Implements PsGetCurrentThreadId.
pub extern "system" fn thread() -> Pointer {
    // SAFETY: the function has no preconditions.
    id(|place| place.thread).unwrap_or_else(|| unsafe { PsGetCurrentThreadId() })
}
