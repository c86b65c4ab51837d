//! The counters of sessions while they run: counted, sampled, shared and freed. Sessions come to them through the
//! sampler alone, because a counter may have subscribers of other sessions.

use pmu::state::CounterSet;
use pmu::{Cpu, CurrentCpu, Disturbance, ProcessorIndex};

use super::subscriptions::Subscriber;
use super::{CounterSubscriptions, Sampler};
use crate::sampler::SampleStats;
use crate::time::Ticks;

impl Sampler {
    /// Returns the counters of a processor whose owner has this tag.
    ///
    /// # IRQL
    /// PROFILE_LEVEL on that processor, or any with the engine's lock.
    pub fn counters_of(&self, processor: ProcessorIndex, tag: u16) -> CounterSet {
        self.hal.cpu_counters(processor).counters(|state| state.owner() == tag)
    }

    /// Starts counters that were reserved on the current processor, after it wrote the extra registers that they use.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn start(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        self.prepare(current, counters);
        self.hal.start(current, counters);
        self.begin_windows(current, counters);
    }

    /// Does what comes before a start of counters.
    #[inline(never)] // so that the start does not need its stack too
    fn prepare(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return };
        self.hal.program_extra_registers(current, counters);
        let cpu_counters = self.hal.cpu_counters(current.index());
        for (counter, subscriptions) in per_cpu.subscriptions_of(counters) {
            let state = cpu_counters.get(counter);
            if state.interrupt() {
                subscriptions.set_place(current.index(), counter);
                per_cpu.set_event(counter, self.event_key(state));
                subscriptions.reloaded(state.interval());
            }
        }
        self.start_precise(current, per_cpu, counters);
    }

    /// Updates slots and metrics, which are read together.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn update_metrics(&self, current: CurrentCpu<'_, impl Cpu>) {
        self.hal.update_metrics(current);
    }

    /// Takes what was found disturbed on the current processor: calls `each` with the counter, the change and its time.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn take_disturbances(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        now: Ticks,
        each: impl FnMut(u8, Disturbance, u64),
    ) {
        self.hal.take_disturbances(current, CounterSet::first(CounterSet::MOST), now.0, each);
    }

    /// Stops counters of the current processor that no session samples.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn stop_counting(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let _ = self.hal.stop(current, self.hal.stop_metrics(current, counters));
    }

    /// Ends the delivery of the samples of `counters` of the current processor to `subscriber`. Counters without
    /// another subscriber are stopped. The others go on for the owner with the tag that `successor` returns for a
    /// subscriber. Overflows that were not served yet are counted as lost.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn leave(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        subscriber: Subscriber,
        counters: CounterSet,
        now: Ticks,
        successor: impl Fn(Subscriber) -> Option<u16>,
    ) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return };
        let is_shared = |(_, subscriptions): &(u8, &CounterSubscriptions)| subscriptions.has_others(subscriber);
        let shared: CounterSet =
            per_cpu.subscriptions_of(counters).filter(is_shared).map(|(counter, _)| counter).collect();
        let alone = counters.without(shared);
        let mut late = self.stop(current, per_cpu, alone, now);
        if !shared.is_empty() {
            late = late.or(self.hal.check_overflow(current).0.and(shared));
        }
        for counter in late.iter() {
            per_cpu.count_for(subscriber, counter, SampleStats::lose);
        }
        // After the stop: records from before it still belong to this subscriber.
        for (counter, subscriptions) in per_cpu.subscriptions_of(counters) {
            subscriptions.remove(subscriber);
            if let Some(owner) = subscriptions.subscribers().iter().find_map(&successor) {
                self.hal.hand_over(current, counter, owner);
            }
        }
        per_cpu.throttle.forget(alone);
    }

    /// Frees those of `counters` of a processor, which were stopped, that have no subscriber.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL, with the engine's lock.
    pub fn free(&self, processor: ProcessorIndex, counters: CounterSet) {
        let is_left = |counter: &u8| self.subscribers(processor, *counter).next().is_none();
        self.hal.free(processor, counters.iter().filter(is_left).collect());
    }
}
