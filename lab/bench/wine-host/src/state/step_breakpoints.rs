//! The breakpoints that lead the stepping thread to an instruction.
//!
//! Other threads execute the same code. They pass a breakpoint: it is removed, the thread executes one instruction, and
//! it is put back. A lock keeps the code and the breakpoints in step. Signal handlers take it, which is safe because no
//! code of a driver runs under it.

use crate::state::step_route::Breakpoint;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};

/// The greatest number of threads that pass a breakpoint at once.
const MAX_PASSING: usize = 16;

/// The greatest number of breakpoints on one way.
const MAX_BREAKPOINTS: usize = 2;

/// INT3 (SDM Vol. 2).
pub const INT3: u8 = 0xCC;

/// Reads and writes the code of the driver.
pub trait Code {
    /// Replaces a byte, and returns the one that was there.
    fn replace(&self, address: usize, byte: u8) -> u8;

    /// Returns a byte.
    fn read(&self, address: usize) -> u8;
}

/// What a trap of INT3 is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hit {
    /// There is no breakpoint, but the code has an INT3.
    Unknown,
    /// The instruction is complete again.
    Removed,
    /// The thread executes this instruction and goes on.
    Passes,
    /// The stepping thread has reached this instruction.
    Reached {
        /// Its number.
        instruction: u64,
        /// Whether no breakpoint is left.
        is_last: bool,
    },
}

/// A breakpoint of the way that lies ahead.
#[derive(Debug, Default)]
struct Ahead {
    /// The address of the instruction, or 0.
    address: AtomicUsize,
    passes: AtomicU64,
    instruction: AtomicU64,
}

/// The breakpoints of the stepping thread.
#[derive(Debug, Default)]
pub struct Breakpoints {
    is_locked: AtomicBool,
    /// The first one is in the code, unless a thread passes it.
    ahead: [Ahead; MAX_BREAKPOINTS],
    /// The address of the last breakpoint that was in the code, and the first byte of its instruction.
    planted: AtomicUsize,
    original: AtomicU8,
    /// The threads that pass a breakpoint now, or 0.
    passing: [AtomicU32; MAX_PASSING],
}

impl Breakpoints {
    /// Replaces the breakpoints by those of a way, in the image that starts at this address.
    pub fn set(&self, start: usize, way: &[Breakpoint], code: &impl Code) {
        self.with_lock(|| {
            self.restore(code);
            for (index, ahead) in self.ahead.iter().enumerate() {
                let next = way.get(index);
                let address = next.and_then(|next| Some(start + usize::try_from(next.offset).ok()?));
                ahead.passes.store(next.map_or(0, |next| next.passes), SeqCst);
                ahead.instruction.store(next.map_or(0, |next| next.instruction), SeqCst);
                ahead.address.store(address.unwrap_or_default(), SeqCst);
            }
            self.plant(code);
        });
    }

    /// Removes the breakpoints.
    pub fn clear(&self, code: &impl Code) {
        self.set(0, &[], code);
    }

    /// Ends the pass of this thread, and puts the breakpoint back after that of the last thread. Returns whether the
    /// thread was passing one.
    pub fn has_passed(&self, thread: u32, code: &impl Code) -> bool {
        // Most threads never pass one.
        self.is_passing(thread)
            && self.with_lock(|| {
                for slot in &self.passing {
                    let _ = slot.compare_exchange(thread, 0, SeqCst, SeqCst);
                }
                if self.passing.iter().all(|slot| slot.load(SeqCst) == 0) {
                    self.plant(code);
                }
                true
            })
    }

    /// Returns what a trap of INT3 at an address means for a thread, which is the stepping one or not.
    pub fn hit(&self, thread: u32, is_stepping: bool, address: usize, code: &impl Code) -> Hit {
        self.with_lock(|| {
            let is_removed = code.read(address) != INT3;
            if self.first_address() != Some(address) || is_removed && !is_stepping {
                return if is_removed { Hit::Removed } else { Hit::Unknown };
            }
            let [first, second] = &self.ahead;
            let left = first.passes.load(SeqCst);
            if !is_stepping || left > 0 {
                let mut slots = self.passing.iter();
                if !slots.any(|slot| slot.compare_exchange(0, thread, SeqCst, SeqCst).is_ok()) {
                    return Hit::Unknown;
                }
                first.passes.store(left - u64::from(is_stepping), SeqCst);
                self.restore(code);
                return Hit::Passes;
            }
            self.restore(code);
            let instruction = first.instruction.load(SeqCst);
            first.passes.store(second.passes.load(SeqCst), SeqCst);
            first.instruction.store(second.instruction.load(SeqCst), SeqCst);
            first.address.store(second.address.swap(0, SeqCst), SeqCst);
            self.plant(code);
            Hit::Reached { instruction, is_last: self.first_address().is_none() }
        })
    }

    /// Returns the first byte of the instruction at an address, if the breakpoint is or was there.
    pub fn original(&self, address: usize) -> Option<u8> {
        self.with_lock(|| (self.planted.load(SeqCst) == address).then(|| self.original.load(SeqCst)))
    }

    fn is_passing(&self, thread: u32) -> bool {
        self.passing.iter().any(|slot| slot.load(SeqCst) == thread)
    }

    /// Returns the address of the first breakpoint, if there is one.
    fn first_address(&self) -> Option<usize> {
        let [first, _] = &self.ahead;
        Some(first.address.load(SeqCst)).filter(|address| *address != 0)
    }

    /// Puts the first breakpoint into the code.
    fn plant(&self, code: &impl Code) {
        if let Some(address) = self.first_address() {
            let found = code.replace(address, INT3);
            if found != INT3 {
                self.original.store(found, SeqCst);
                self.planted.store(address, SeqCst);
            }
        }
    }

    /// Removes the first breakpoint from the code, if it is there.
    fn restore(&self, code: &impl Code) {
        if let Some(address) = self.first_address() {
            code.replace(address, self.original.load(SeqCst));
        }
    }

    fn with_lock<T>(&self, body: impl FnOnce() -> T) -> T {
        while self.is_locked.swap(true, SeqCst) {
            std::hint::spin_loop();
        }
        let result = body();
        self.is_locked.store(false, SeqCst);
        result
    }
}

/// Code for tests.
#[cfg(test)]
pub mod fake {
    use super::*;
    use std::{cell::RefCell, ops::Range};

    /// NOP (SDM Vol. 2).
    pub const NOP: u8 = 0x90;

    /// The code of a driver.
    pub struct Bytes {
        start: usize,
        bytes: RefCell<Vec<u8>>,
    }

    impl Code for Bytes {
        fn replace(&self, address: usize, byte: u8) -> u8 {
            std::mem::replace(&mut self.bytes.borrow_mut()[address - self.start], byte)
        }

        fn read(&self, address: usize) -> u8 {
            self.bytes.borrow()[address - self.start]
        }
    }

    impl Bytes {
        /// Returns an image of NOPs.
        #[must_use]
        pub fn new(image: Range<usize>) -> Self {
            Self { start: image.start, bytes: RefCell::new(vec![NOP; image.len()]) }
        }

        /// Returns the offsets of breakpoints.
        pub fn planted(&self) -> Vec<usize> {
            let bytes = self.bytes.borrow();
            (0..bytes.len()).filter(|offset| bytes[*offset] == INT3).collect()
        }
    }
}
