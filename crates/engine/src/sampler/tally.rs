//! The account of one counter's samples, for one session.

use core::sync::atomic::{AtomicU64, Ordering};

use profile::state::CounterSet;

/// What became of the overflows of a counter. Written on its processor at PROFILE_LEVEL only, read by anyone.
#[derive(Debug, Default)]
pub struct Tally {
    samples: AtomicU64,
    lost: AtomicU64,
    throttled: AtomicU64,
}

impl Tally {
    /// The sample is in the ring.
    pub fn deliver(&self) {
        add_one(&self.samples);
    }

    /// The ring had no room, or the counter was stopped before it was served.
    pub fn lose(&self) {
        add_one(&self.lost);
    }

    /// The processor had spent its budget.
    pub fn throttle(&self) {
        add_one(&self.throttled);
    }

    /// Samples, lost ones, throttled ones.
    pub fn read(&self) -> [u64; 3] {
        [&self.samples, &self.lost, &self.throttled].map(|count| count.load(Ordering::Relaxed))
    }
}

/// There is one writer: no locked instruction is needed.
fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// One for each counter of a processor.
#[derive(Debug, Default)]
pub struct Tallies([Tally; CounterSet::MOST as usize]);

impl Tallies {
    /// The account of a counter.
    pub fn of(&self, counter: u8) -> Option<&Tally> {
        self.0.get(usize::from(counter))
    }
}
