//! Statistics of the samples of one counter, for one session.

use core::ops::AddAssign;
use core::sync::atomic::Ordering;

use pmu::state::CounterSet;

use super::time_sampling::TimeSampling;
use super::window::{MAX_CONDITIONS, Window};
use crate::event::Condition;
use crate::sync::AtomicU64;

/// Numbers of delivered, lost and throttled samples of a counter. Only its processor writes them, at PROFILE_LEVEL; any
/// code may read them.
#[derive(Debug, Default)]
pub struct SampleStats {
    samples: AtomicU64,
    /// Lost samples that are not in `full`.
    lost: AtomicU64,
    full: AtomicU64,
    throttled: AtomicU64,
    /// Overflows without an op, of a counter at which ops are sampled.
    left_out: AtomicU64,
}

impl SampleStats {
    /// Counts a sample that is in the ring.
    pub fn deliver(&self) {
        add_one(&self.samples);
    }

    /// Counts a lost sample: the interrupt did not come before the counter was stopped or recovered by a tick.
    pub fn lose(&self) {
        add_one(&self.lost);
    }

    /// Counts a sample that was lost because the ring was full.
    pub fn lose_to_full_ring(&self) {
        add_one(&self.full);
    }

    /// Counts a sample that was dropped because the processor had spent its budget.
    pub fn throttle(&self) {
        add_one(&self.throttled);
    }

    /// Counts an overflow before which no op was sampled that is wanted.
    pub fn leave_out(&self) {
        add_one(&self.left_out);
    }

    /// Returns the numbers of samples.
    pub fn read(&self) -> SampleNumbers {
        let [samples, lost, full, throttled, unmet] =
            [&self.samples, &self.lost, &self.full, &self.throttled, &self.left_out]
                .map(|count| count.load(Ordering::Relaxed));
        SampleNumbers { samples, lost: lost + full, full, throttled, unmet }
    }
}

/// Numbers of samples of a counter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleNumbers {
    /// Samples in the ring, or fetched from it.
    pub samples: u64,
    /// Samples lost.
    pub lost: u64,
    /// Those of the lost samples that found the ring full.
    pub full: u64,
    /// Samples dropped because the processor had spent its budget.
    pub throttled: u64,
    /// Overflows whose windows did not meet the condition, or without an op that is wanted.
    pub unmet: u64,
}

impl SampleNumbers {
    /// Returns the number of overflows.
    pub const fn overflows(&self) -> u64 {
        self.samples + self.lost + self.throttled + self.unmet
    }
}

impl AddAssign for SampleNumbers {
    fn add_assign(&mut self, other: Self) {
        self.samples += other.samples;
        self.lost += other.lost;
        self.full += other.full;
        self.throttled += other.throttled;
        self.unmet += other.unmet;
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
    /// Those of counters that have a condition.
    windows: [Window; MAX_CONDITIONS],
}

impl Default for CpuSampleStats {
    fn default() -> Self {
        Self {
            stats: core::array::from_fn(|_| SampleStats::default()),
            time: TimeSampling::default(),
            windows: Default::default(),
        }
    }
}

impl CpuSampleStats {
    /// Returns the statistics of a counter, of the branches at `BRANCH_STATS`, or of samples by time at `TIME_STATS`.
    pub fn of(&self, counter: u8) -> Option<&SampleStats> {
        self.stats.get(usize::from(counter))
    }

    /// Returns the numbers of samples of a counter, of the branches, or by time.
    pub fn read(&self, counter: u8) -> SampleNumbers {
        let numbers = self.of(counter).map(SampleStats::read).unwrap_or_default();
        SampleNumbers { unmet: numbers.unmet + self.window(counter).map_or(0, Window::unmet), ..numbers }
    }

    /// Returns the window of a counter that has a condition.
    pub(super) fn window(&self, counter: u8) -> Option<&Window> {
        self.windows.iter().find(|window| window.is_of(counter))
    }

    /// Sets the condition of the samples of a counter, whose ratio is of these counters. At most four can have one.
    pub fn set_condition(&self, counter: u8, condition: Condition, ratio: [u8; 2]) {
        if let Some(window) = self.windows.iter().find(|window| window.is_unused()) {
            window.set(counter, condition, ratio);
        }
    }

    /// Returns the time by which the session samples.
    pub const fn time(&self) -> &TimeSampling {
        &self.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_overflow_is_a_sample_or_lost_or_throttled_or_without_the_condition() {
        let stats = SampleStats::default();
        (0..7).for_each(|_| stats.deliver());
        (0..20).for_each(|_| stats.lose());
        (0..300).for_each(|_| stats.lose_to_full_ring());
        (0..4_000).for_each(|_| stats.throttle());
        let numbers = stats.read();
        assert_eq!(numbers, SampleNumbers { samples: 7, lost: 320, full: 300, throttled: 4_000, unmet: 0 });
        assert_eq!(SampleNumbers { unmet: 50_000, ..numbers }.overflows(), 54_327);
    }

    #[test]
    fn a_sum_has_the_numbers_of_both() {
        let mut sum = SampleNumbers { samples: 3, lost: 5, full: 7, throttled: 11, unmet: 13 };
        sum += SampleNumbers { samples: 100, lost: 200, full: 300, throttled: 400, unmet: 500 };
        assert_eq!(sum, SampleNumbers { samples: 103, lost: 205, full: 307, throttled: 411, unmet: 513 });
    }

    #[test]
    fn a_processor_has_statistics_of_every_counter_of_branches_and_of_time() {
        let stats = CpuSampleStats::default();
        for index in 0..=u8::MAX {
            assert_eq!(stats.of(index).is_some(), index <= TIME_STATS, "{index}");
        }
        assert_eq!((BRANCH_STATS, TIME_STATS), (CounterSet::MOST, CounterSet::MOST + 1));
    }
}
