//! A function of Wine that everybody calls, Wine too, and that the lab has another one for.

#![expect(unsafe_code, reason = "changes code")]

use crate::{kernel::requests, lock::lock, nt};
use std::sync::Mutex;

/// `jmp [rip]`, and behind it the address to jump to.
const JUMP: [u8; 6] = [0xFF, 0x25, 0, 0, 0, 0];
const LENGTH: usize = JUMP.len() + size_of::<usize>();

/// Another function in the place of one of Wine's.
struct Hook {
    at: usize,
    before: [u8; LENGTH],
}

impl Hook {
    /// Puts `function` in the place of an export of ntoskrnl.exe; None if Wine has none of that name.
    ///
    /// # Safety
    /// Both are functions of the same type, nobody is in the first instructions of Wine's, and `function` stays until
    /// [`remove`](Self::remove).
    unsafe fn place(name: &str, function: *const ()) -> Option<Self> {
        let at = nt::export("ntoskrnl.exe", name)?;
        let code = std::ptr::with_exposed_provenance_mut::<u8>(at);
        // SAFETY: no function of Wine that does anything is shorter, since each begins with what it logs.
        let before = unsafe { code.cast::<[u8; LENGTH]>().read_unaligned() };
        let mut jump = [0; LENGTH];
        let (instruction, target) = jump.split_at_mut(JUMP.len());
        instruction.copy_from_slice(&JUMP);
        target.copy_from_slice(&function.expose_provenance().to_le_bytes());
        // SAFETY: the bytes read above; the caller promises that nobody executes them now.
        unsafe { nt::write_code(code, &jump) };
        Some(Self { at, before })
    }

    /// Wine's function is in its place again.
    ///
    /// # Safety
    /// Nobody is in the jump.
    unsafe fn remove(self) {
        // SAFETY: where `place` wrote as much; the caller promises that nobody executes it now.
        unsafe { nt::write_code(std::ptr::with_exposed_provenance_mut(self.at), &self.before) };
    }
}

static HOOKS: Mutex<Vec<Hook>> = Mutex::new(Vec::new());

/// Takes the place of what Wine itself calls; false if Wine lacks it.
pub fn start() -> bool {
    let functions =
        [("IoCallDriver", requests::call_driver as *const ()), ("IoCancelIrp", requests::cancel as *const ())];
    let mut hooks = lock(&HOOKS);
    for (name, function) in functions {
        // SAFETY: of the same type; Wine sends requests only when a driver is loaded, and none is yet.
        hooks.extend(unsafe { Hook::place(name, function) });
    }
    hooks.len() == functions.len()
}

pub fn stop() {
    for hook in lock(&HOOKS).drain(..) {
        // SAFETY: no driver is loaded any more, so no request is on its way.
        unsafe { hook.remove() };
    }
}
