//! The current process and thread. During an interrupt these are the process and thread of the interrupted site.

#![expect(unsafe_code, reason = "calls Wine's functions")]

use crate::nt::Pointer;
use bench_protocol::InterruptSite;
use std::{cell::Cell, ptr};

#[link(name = "ntoskrnl.exe", kind = "raw-dylib", modifiers = "+verbatim")]
unsafe extern "system" {
    fn PsGetCurrentProcessId() -> Pointer;
    fn PsGetCurrentThreadId() -> Pointer;
}

thread_local! {
    static INTERRUPTED: Cell<Option<InterruptSite>> = const { Cell::new(None) };
}

/// Runs `body` as an interrupt of `site`.
pub fn with_interrupted(site: InterruptSite, body: impl FnOnce()) {
    INTERRUPTED.set(Some(site));
    body();
    INTERRUPTED.set(None);
}

fn id(of: impl Fn(InterruptSite) -> u32) -> Option<Pointer> {
    let id = usize::try_from(of(INTERRUPTED.get()?)).ok()?;
    Some(ptr::without_provenance_mut(id))
}

/// Implements PsGetCurrentProcessId.
pub extern "system" fn process() -> Pointer {
    // SAFETY: the function has no preconditions.
    id(|site| site.process).unwrap_or_else(|| unsafe { PsGetCurrentProcessId() })
}

/// Implements PsGetCurrentThreadId.
pub extern "system" fn thread() -> Pointer {
    // SAFETY: the function has no preconditions.
    id(|site| site.thread).unwrap_or_else(|| unsafe { PsGetCurrentThreadId() })
}
