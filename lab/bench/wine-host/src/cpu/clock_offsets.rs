//! The difference between the clocks of the machine and those of Wine.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The value of [`ClockOffsets::held`] while the performance counter runs.
const NOT_HELD: i64 = i64::MIN;

/// The time that the clocks have gained without real time, in milliseconds, and the held performance counter.
pub struct ClockOffsets {
    slept: AtomicU64,
    advanced: AtomicU64,
    held: AtomicI64,
}

impl Default for ClockOffsets {
    /// Returns clocks without a difference.
    fn default() -> Self {
        Self { slept: AtomicU64::new(0), advanced: AtomicU64::new(0), held: AtomicI64::new(NOT_HELD) }
    }
}

impl ClockOffsets {
    /// Adds the duration of a sleep.
    pub fn add_sleep(&self, milliseconds: u64) {
        self.slept.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// Advances the clocks, including those of waits.
    pub fn advance(&self, milliseconds: u64) {
        self.advanced.fetch_add(milliseconds, Ordering::SeqCst);
    }

    /// Holds the performance counter at a value, or lets it run with `None`.
    pub fn hold_counter(&self, value: Option<i64>) {
        self.held.store(value.unwrap_or(NOT_HELD), Ordering::SeqCst);
    }

    /// Returns the value at which the performance counter is held, if it is.
    pub fn held_counter(&self) -> Option<i64> {
        Some(self.held.load(Ordering::SeqCst)).filter(|held| *held != NOT_HELD)
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
