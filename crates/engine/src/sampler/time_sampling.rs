//! Sampling by time: which expiries of a timer count for a session on a processor.
//!
//! A timer of the kernel expires with the clock interrupt, which may come less often than the interval, late, or once
//! for several expiries. Therefore measured time says how many samples are due, and a sample that no expiry came for is
//! missed, not made up for.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::time::{Duration100ns, Ticks};

/// The time by which one session samples on one processor. The processor writes it at PROFILE_LEVEL, or the session
/// while it does not sample there.
#[derive(Debug, Default)]
pub struct TimeSampling {
    /// Interval in units of 100 ns; 0 if the session does not sample by time.
    interval: AtomicU64,
    /// When it began, by the platform's clock, plus the time asleep since.
    begun: AtomicU64,
    /// The last expiry that counted.
    last: AtomicU64,
}

impl TimeSampling {
    /// Begins to sample at an interval in units of 100 ns.
    pub fn begin(&self, interval: u32, now: Ticks) {
        self.begun.store(now.0, Ordering::Relaxed);
        self.last.store(now.0, Ordering::Relaxed);
        self.interval.store(interval.into(), Ordering::Relaxed);
    }

    /// Ends sampling.
    pub fn end(&self) {
        self.interval.store(0, Ordering::Relaxed);
    }

    /// Excludes the duration of a sleep that ends now from the time.
    pub fn exclude(&self, slept: Ticks, now: Ticks) {
        let begun = self.begun.load(Ordering::Relaxed).saturating_add(slept.0).min(now.0);
        self.begun.store(begun, Ordering::Relaxed);
    }

    /// Returns whether the session samples by time.
    pub fn is_active(&self) -> bool {
        self.interval() != 0
    }

    /// Returns the interval in units of 100 ns; 0 if the session does not sample by time.
    pub fn interval(&self) -> u32 {
        u32::try_from(self.interval.load(Ordering::Relaxed)).unwrap_or(u32::MAX)
    }

    /// Returns whether an expiry at `now` counts, after `so_far` that have. It does if more intervals are over, or if
    /// half of one is over since the last: expiries come a little early or late, and timers of other sessions expire
    /// more often. No more than one expiry counts ahead of time.
    pub fn take(&self, so_far: u64, now: Ticks, clock: u64) -> bool {
        let interval = self.interval.load(Ordering::Relaxed);
        if interval == 0 {
            return false;
        }
        let since = |earlier: &AtomicU64| now.saturating_since(Ticks(earlier.load(Ordering::Relaxed))).duration(clock);
        let (over, after_last) = (since(&self.begun).0 / interval, since(&self.last).0);
        let counts = over > so_far || (over == so_far && after_last >= interval / 2);
        if counts {
            self.last.store(now.0, Ordering::Relaxed);
        }
        counts
    }
}

/// Returns the number of intervals of 100 ns units in a duration.
pub fn intervals(time: Duration100ns, interval: u32) -> u64 {
    time.0 / u64::from(interval.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units of the clock per second; a unit is an interval of the tests' session.
    const CLOCK: u64 = 1_000;

    /// Returns how many expiries at these times, in tenths of the interval, count.
    fn taken(times: impl IntoIterator<Item = u64>) -> u64 {
        let time = TimeSampling::default();
        time.begin(100_000, Ticks(0));
        let count = |so_far, tenths| so_far + u64::from(time.take(so_far, Ticks(tenths), CLOCK));
        times.into_iter().fold(0, count)
    }

    #[test]
    fn expiries_that_come_a_little_early_or_late_all_count() {
        assert_eq!(taken((1..=100).map(|number| number * 10)), 100);
        assert_eq!(taken((1..=100).map(|number| number * 10 + number % 3 * 2 - 2)), 100);
        assert_eq!(taken((1..=100).map(|number| number * 10 + 9)), 100);
    }

    #[test]
    fn no_more_expiries_count_than_there_are_intervals_and_one() {
        assert_eq!(taken(1..=1_000), 101, "ten times as often");
        assert_eq!(taken((1..=125).map(|number| number * 8)), 101, "a little too often");
        assert_eq!(taken((1..=64).map(|number| number * 156 / 10)), 64, "too seldom");
    }

    #[test]
    fn a_session_that_does_not_sample_by_time_takes_none() {
        let time = TimeSampling::default();
        assert!(!time.take(0, Ticks(1_000_000), CLOCK));
        time.begin(100_000, Ticks(0));
        time.end();
        assert!(!time.take(0, Ticks(1_000_000), CLOCK));
    }
}
