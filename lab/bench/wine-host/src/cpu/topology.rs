//! How many processors the machine has.

use std::sync::atomic::{AtomicU32, Ordering};

/// The largest number of processors.
pub const MAX_PROCESSORS: u32 = 8;

/// The number of processors.
pub struct Topology {
    active: AtomicU32,
    maximum: AtomicU32,
}

impl Default for Topology {
    /// Returns a machine with one processor.
    fn default() -> Self {
        Self { active: AtomicU32::new(1), maximum: AtomicU32::new(1) }
    }
}

impl Topology {
    /// Sets the number of active processors and of possible processors. Returns false and changes nothing if the
    /// numbers are not supported.
    pub fn set_counts(&self, active: u32, maximum: u32) -> bool {
        let is_possible = (1..=maximum).contains(&active) && maximum <= MAX_PROCESSORS;
        if is_possible {
            self.maximum.store(maximum, Ordering::SeqCst);
            self.active.store(active, Ordering::SeqCst);
        }
        is_possible
    }

    /// Sets the number of active processors.
    pub fn set_active(&self, count: u32) {
        self.active.store(count, Ordering::SeqCst);
    }

    /// Returns the number of active processors.
    pub fn active(&self) -> u32 {
        self.active.load(Ordering::SeqCst)
    }

    /// Returns the number of processors that can become active.
    pub fn maximum(&self) -> u32 {
        self.maximum.load(Ordering::SeqCst)
    }
}
