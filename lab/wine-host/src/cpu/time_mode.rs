//! The time mode: events happen by the time-stamp counter, by a script of a test, or not at all.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether time is live or scripted, and whether the machine sleeps.
pub struct TimeMode {
    live: AtomicBool,
    asleep: AtomicBool,
}

impl Default for TimeMode {
    /// Returns live time, awake.
    fn default() -> Self {
        Self { live: AtomicBool::new(true), asleep: AtomicBool::new(false) }
    }
}

impl TimeMode {
    /// Selects live time or scripted time.
    pub fn set_live(&self, live: bool) {
        self.live.store(live, Ordering::SeqCst);
    }

    /// Records whether the machine sleeps.
    pub fn set_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::SeqCst);
    }

    /// Returns whether events happen by the time-stamp counter now.
    pub fn is_live(&self) -> bool {
        !self.is_scripted() && !self.is_asleep()
    }

    /// Returns whether events happen only when a test says so.
    pub fn is_scripted(&self) -> bool {
        !self.live.load(Ordering::SeqCst)
    }

    /// Returns whether the machine sleeps.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }
}
