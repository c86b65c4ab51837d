//! Statistics of the samples of one counter, for one session.

use core::sync::atomic::{AtomicU64, Ordering};

use pmu::state::CounterSet;

use super::time_sampling::TimeSampling;

/// Numbers of delivered, lost and throttled samples of a counter. Only its processor writes them, at PROFILE_LEVEL; any
/// code may read them.
#[derive(Debug, Default)]
pub struct SampleStats {
    samples: AtomicU64,
    lost: AtomicU64,
    throttled: AtomicU64,
}

impl SampleStats {
    /// Counts a sample that is in the ring.
    pub fn deliver(&self) {
        add_one(&self.samples);
    }

    /// Counts a lost sample: the ring was full, or the interrupt did not come before the counter was stopped or
    /// recovered by a tick.
    pub fn lose(&self) {
        add_one(&self.lost);
    }

    /// Counts a sample that was dropped because the processor had spent its budget.
    pub fn throttle(&self) {
        add_one(&self.throttled);
    }

    /// Returns the numbers of delivered, lost and throttled samples.
    pub fn read(&self) -> [u64; 3] {
        [&self.samples, &self.lost, &self.throttled].map(|count| count.load(Ordering::Relaxed))
    }
}

/// Adds one. The cell has one writer, so that no locked instruction is needed.
pub(super) fn add_one(count: &AtomicU64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}

/// Index of the branches in [`CpuSampleStats`], after the counters.
pub const BRANCH_STATS: u8 = CounterSet::MOST;

/// Index of the samples by time in [`CpuSampleStats`], after the branches.
pub const TIME_STATS: u8 = BRANCH_STATS + 1;

/// Statistics of each counter of a processor, of its branches, and of samples by time.
#[derive(Debug)]
pub struct CpuSampleStats {
    stats: [SampleStats; TIME_STATS as usize + 1],
    time: TimeSampling,
}

impl Default for CpuSampleStats {
    fn default() -> Self {
        Self { stats: core::array::from_fn(|_| SampleStats::default()), time: TimeSampling::default() }
    }
}

impl CpuSampleStats {
    /// Returns the statistics of a counter, of the branches at `BRANCH_STATS`, or of samples by time at `TIME_STATS`.
    pub fn of(&self, counter: u8) -> Option<&SampleStats> {
        self.stats.get(usize::from(counter))
    }

    /// Returns the time by which the session samples.
    pub const fn time(&self) -> &TimeSampling {
        &self.time
    }
}
