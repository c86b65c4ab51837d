//! The account of one counter's samples, for one session.

use core::sync::atomic::{AtomicU64, Ordering};

use pmu::state::CounterSet;

/// What became of the overflows of a counter. Written on its processor at PROFILE_LEVEL only, read by anyone.
#[derive(Debug, Default)]
pub struct SampleStats {
    samples: AtomicU64,
    lost: AtomicU64,
    throttled: AtomicU64,
}

impl SampleStats {
    /// The sample is in the ring.
    pub fn deliver(&self) {
        add_one(&self.samples);
    }

    /// The ring had no room, or the interrupt did not come before the counter was stopped or a tick recovered it.
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
pub(super) fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// The place of the branches: behind the counters.
pub const BRANCH_STATS: u8 = CounterSet::MOST;

/// One for each counter of a processor, and one for its branches.
#[derive(Debug)]
pub struct CpuSampleStats([SampleStats; BRANCH_STATS as usize + 1]);

impl Default for CpuSampleStats {
    fn default() -> Self {
        Self(core::array::from_fn(|_| SampleStats::default()))
    }
}

impl CpuSampleStats {
    /// The account of a counter, or of the branches.
    pub fn of(&self, counter: u8) -> Option<&SampleStats> {
        self.0.get(usize::from(counter))
    }
}
