//! Sampling by time: what runs when the timer of a processor expires.

use pmu::{Cpu, CurrentCpu};
use protocol::{CounterKind, CounterSample, SampleRecord};

use super::per_cpu::PerCpuSampling;
use super::sample_stats::TIME_STATS;
use super::subscriptions::{Subscriber, Subscribers};
use super::tracing::EventKey;
use super::{Deferred, Interrupted, Sampler};
use crate::time::Ticks;

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
                event: TIME_STATS.into(),
                interval,
                kind: CounterKind::Sample,
                mode: interrupted.mode,
                pebs_sequence: 0,
                cookie,
            };
            // One event for the expiry, whatever the number of sessions.
            per_cpu.with_events(|events| events.add_once(TIME_STATS, EventKey::TIME, &sample));
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
