//! The difference between the clocks of the machine and those of Wine.

use std::sync::atomic::{AtomicU64, Ordering};

/// The time that the clocks have gained without real time, in milliseconds.
pub struct ClockOffsets {
    slept: AtomicU64,
    advanced: AtomicU64,
}

impl ClockOffsets {
    /// Returns no difference.
    pub const fn new() -> Self {
        Self { slept: AtomicU64::new(0), advanced: AtomicU64::new(0) }
    }

    /// Adds the duration of a sleep.
    pub fn add_sleep(&self, milliseconds: u64) {
        self.slept.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// Advances the clocks, including those of waits.
    pub fn advance(&self, milliseconds: u64) {
        self.advanced.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// Returns the duration of all sleeps, during which the clocks of waits stop.
    pub fn slept(&self) -> u64 {
        self.slept.load(Ordering::SeqCst)
    }

    /// Returns the time by which a test advanced the clocks.
    pub fn advanced(&self) -> u64 {
        self.advanced.load(Ordering::SeqCst)
    }
}
