//! Sampling by time: what runs when a timer expires.
//!
//! A timer of the kernel expires with the clock interrupt, which may come less often than the interval, late, or once
//! for several expiries. Therefore measured time says how many samples are due, and a sample that no expiry came for is
//! missed, not made up for.

use core::sync::atomic::{AtomicU64, Ordering};

use pmu::{Cpu, CurrentCpu, Source};
use protocol::{CounterKind, CounterSample, SampleRecord};

use super::per_cpu::PerCpuSampling;
use super::sample_stats::TIME_STATS;
use super::subscriptions::{Subscriber, Subscribers};
use super::{Deferred, Interrupted, Sampler};
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
    fn exclude(&self, slept: Ticks, now: Ticks) {
        let begun = self.begun.load(Ordering::Relaxed).saturating_add(slept.0).min(now.0);
        self.begun.store(begun, Ordering::Relaxed);
    }

    /// Returns whether the session samples by time.
    pub fn is_active(&self) -> bool {
        self.interval() != 0
    }

    fn interval(&self) -> u32 {
        u32::try_from(self.interval.load(Ordering::Relaxed)).unwrap_or(u32::MAX)
    }

    /// Returns whether an expiry at `now` counts, after `so_far` that have. It does if more intervals are over, or if
    /// half of one is over since the last: expiries come a little early or late, and timers of other sessions expire
    /// more often. No more than one expiry counts ahead of time.
    fn take(&self, so_far: u64, now: Ticks, clock: u64) -> bool {
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

impl Sampler {
    /// Counts an expiry of the timer of the current processor at `now`. Returns the sessions that take a sample of it,
    /// by [`sample_time`](Self::sample_time), and whether a ring has become half full. While the processor is
    /// throttled, there are none.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn expire(&self, current: CurrentCpu<'_, impl Cpu>, now: Ticks) -> (Subscribers, bool) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return (Subscribers::default(), false) };
        // Without a counter that is sampled, nothing else ends the pauses.
        let watermark_hit = per_cpu.throttle.is_over(now, self.nominal_tick()) && self.resume_at(current, per_cpu, now);
        // Nothing ticks there either.
        self.follow_trace_sessions(per_cpu);
        let is_paused = per_cpu.throttle.is_time_waiting();
        let mut due = Subscribers::default();
        for (subscriber, producer) in per_cpu.producers() {
            producer.try_with(|producer| {
                let Some(stats) = producer.side().of(TIME_STATS) else { return };
                if producer.side().time().take(stats.read().overflows(), now, self.clock) {
                    if is_paused {
                        stats.throttle();
                    } else {
                        due = due.with(subscriber);
                    }
                }
            });
        }
        (due, watermark_hit)
    }

    /// Delivers a sample of an expiry at `begin` to the sessions that are `due`. Reads `clock` at the end.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn sample_time(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        due: Subscribers,
        begin: Ticks,
        clock: impl Fn() -> Ticks,
        interrupted: &Interrupted,
    ) -> Deferred {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return Deferred::default() };
        let mut watermark_hit = false;
        let cookie = per_cpu.next_cookie();
        for subscriber in due.iter() {
            let interval = per_cpu.with(subscriber, |producer| producer.side().time().interval());
            // A session that has ended meanwhile has none.
            let Some(interval) = interval.filter(|interval| *interval != 0) else { continue };
            let sample = CounterSample {
                time: begin.0,
                ip: interrupted.ip,
                process: interrupted.process,
                thread: interrupted.thread,
                processor: current.index().number(),
                source: Source::TIME.0,
                interval,
                kind: CounterKind::Sample,
                mode: interrupted.mode,
                pebs_sequence: 0,
                cookie,
            };
            // One event for the expiry, whatever the number of sessions.
            per_cpu.with_events(|events| events.add_once(TIME_STATS, &sample));
            watermark_hit |= per_cpu.push(subscriber, TIME_STATS, &SampleRecord::from(sample));
        }
        watermark_hit |= self.charge(current, begin, clock());
        Deferred { reader: watermark_hit, events: per_cpu.has_events() }
    }

    /// Charges the time from `begin` to `end`, which was not that of an interrupt, to the budget of the current
    /// processor. Returns whether a ring has become half full.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn charge(&self, current: CurrentCpu<'_, impl Cpu>, begin: Ticks, end: Ticks) -> bool {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return false };
        let is_spent = per_cpu.has_producers() && per_cpu.throttle.spend(end.since(begin), self.overhead);
        is_spent && self.pause(current, per_cpu, end)
    }

    /// Ends the sampling by time of a session on the current processor.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn end_time(&self, current: CurrentCpu<'_, impl Cpu>, subscriber: Subscriber) {
        if let Some(per_cpu) = self.per_cpu(current.index()) {
            per_cpu.with(subscriber, |producer| producer.side().time().end());
        }
    }

    /// Excludes a sleep from the time of every session on a processor.
    pub(super) fn exclude_sleep(per_cpu: &PerCpuSampling, slept: Ticks, now: Ticks) {
        for (_, producer) in per_cpu.producers() {
            producer.try_with(|producer| producer.side().time().exclude(slept, now));
        }
    }
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
