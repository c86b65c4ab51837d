//! Hooks for functions that Wine itself calls, for which replaced imports are not enough.

#![expect(unsafe_code, reason = "changes code")]

use crate::{
    kernel::{call_driver, requests},
    lock::lock,
    nt,
    state::{
        loader::{HOOK_LENGTH, Hook, JUMP},
        machine::MACHINE,
    },
};

impl Hook {
    /// Replaces an export of ntoskrnl.exe by `function`. Returns None if Wine lacks the export.
    ///
    /// # Safety
    /// Both functions have the same type, no thread executes the first instructions of Wine's, and `function` stays
    /// valid until [`remove`](Self::remove).
    unsafe fn place(name: &str, function: *const ()) -> Option<Self> {
        let at = nt::export("ntoskrnl.exe", name)?;
        let code = std::ptr::with_exposed_provenance_mut::<u8>(at);
        // SAFETY: every function of Wine with an effect is longer, because it starts with its log call.
        let before = unsafe { code.cast::<[u8; HOOK_LENGTH]>().read_unaligned() };
        let mut jump = [0; HOOK_LENGTH];
        let (instruction, target) = jump.split_at_mut(JUMP.len());
        instruction.copy_from_slice(&JUMP);
        target.copy_from_slice(&function.expose_provenance().to_le_bytes());
        // SAFETY: these are the bytes read above; the caller guarantees that no thread executes them now.
        unsafe { nt::write_code(code, &jump) };
        Some(Self { at, before })
    }

    /// Restores Wine's function.
    ///
    /// # Safety
    /// No thread executes the jump.
    unsafe fn remove(self) {
        // SAFETY: `place` wrote the same bytes; the caller guarantees that no thread executes them now.
        unsafe { nt::write_code(std::ptr::with_exposed_provenance_mut(self.at), &self.before) };
    }
}

/// Hooks IoCallDriver and IoCancelIrp. Returns false if Wine lacks one of them.
pub fn start() -> bool {
    let functions =
        [("IoCallDriver", call_driver::call_driver as *const ()), ("IoCancelIrp", requests::cancel as *const ())];
    let mut hooks = lock(&MACHINE.loader.hooks);
    for (name, function) in functions {
        // SAFETY: the types are the same. Wine sends requests only to loaded drivers, and none is loaded yet.
        hooks.extend(unsafe { Hook::place(name, function) });
    }
    hooks.len() == functions.len()
}

pub fn stop() {
    for hook in lock(&MACHINE.loader.hooks).drain(..) {
        // SAFETY: no driver is loaded, so no request is in progress.
        unsafe { hook.remove() };
    }
}
