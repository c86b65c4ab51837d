//! The extra registers of one processor: what was found in them, and which threads of a core use them.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use crate::extra::ExtraRegister;

const REGISTERS: usize = ExtraRegister::ALL.len();

/// The extra registers of one processor.
#[derive(Debug)]
pub(crate) struct ExtraState {
    /// Values that the registers had before the driver wrote the first one.
    found: [AtomicU64; REGISTERS],
    /// Bit n: `found` has the value of register n, which is written back at the release.
    pub(crate) saved: AtomicU8,
    /// Of the first thread of a core whose threads share registers: bit 2n + t is that of thread t and register n.
    pub(crate) users: AtomicU8,
}

impl ExtraState {
    pub(crate) const fn new() -> Self {
        Self { found: [const { AtomicU64::new(0) }; REGISTERS], saved: AtomicU8::new(0), users: AtomicU8::new(0) }
    }

    pub(crate) fn is_saved(&self, register: ExtraRegister) -> bool {
        self.saved.load(Ordering::Acquire) >> register as u8 & 1 == 1
    }

    pub(crate) fn found(&self, register: ExtraRegister) -> u64 {
        self.found.get(register as usize).map_or(0, |found| found.load(Ordering::Relaxed))
    }

    pub(crate) fn save(&self, register: ExtraRegister, value: u64) {
        if let Some(found) = self.found.get(register as usize) {
            found.store(value, Ordering::Relaxed);
        }
        self.saved.fetch_or(1 << register as u8, Ordering::Release);
    }
}
