//! The state of the loading of drivers.

use std::{
    ffi::c_void,
    sync::{Mutex, atomic::AtomicPtr},
};

/// What the lab registered and replaced to see drivers load and run.
#[derive(Default)]
pub struct Loader {
    pub hooks: Mutex<Vec<Hook>>,
    /// The handle of the loader's notification, or null.
    pub notification: AtomicPtr<c_void>,
}

/// `jmp [rip]`; the target address follows it.
pub const JUMP: [u8; 6] = [0xFF, 0x25, 0, 0, 0, 0];

/// The number of bytes that a hook replaces.
pub const HOOK_LENGTH: usize = JUMP.len() + size_of::<usize>();

/// A function of Wine that jumps to a function of the lab.
pub struct Hook {
    /// The address of Wine's function.
    pub at: usize,
    /// The bytes that the jump replaced.
    pub before: [u8; HOOK_LENGTH],
}
