//! The time mode: events happen by the time-stamp counter, by a script of a test, or not at all.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether time is real or scripted, and whether the machine sleeps.
pub struct TimeMode {
    real: AtomicBool,
    asleep: AtomicBool,
}

impl Default for TimeMode {
    /// Returns the mode of a machine that is awake and runs in real time.
    fn default() -> Self {
        Self { real: AtomicBool::new(true), asleep: AtomicBool::new(false) }
    }
}

impl TimeMode {
    /// Selects real time or scripted time.
    pub fn set_real(&self, real: bool) {
        self.real.store(real, Ordering::SeqCst);
    }

    /// Records whether the machine sleeps.
    pub fn set_asleep(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::SeqCst);
    }

    /// Returns whether events happen by the time-stamp counter now.
    pub fn is_real(&self) -> bool {
        !self.is_scripted() && !self.is_asleep()
    }

    /// Returns whether events happen only when a test says so.
    pub fn is_scripted(&self) -> bool {
        !self.real.load(Ordering::SeqCst)
    }

    /// Returns whether the machine sleeps.
    pub fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::SeqCst)
    }
}
