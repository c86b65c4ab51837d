//! Which subscribers get the sample of an overflow, if some have a condition.

use pmu::state::CounterSet;
use pmu::{Cpu, CurrentCpu};

use super::Sampler;
use super::per_cpu::PerCpuSampling;
use super::sample_stats::CpuSampleStats;
use super::subscriptions::{CounterSubscriptions, Subscriber, Subscribers};

impl Sampler {
    /// Begins a window of each of `counters` of the current processor that has a condition. They run.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline(never)] // for the stack of its callers
    pub fn begin_windows(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let Some(per_cpu) = self.per_cpu(current.index()).filter(|per_cpu| per_cpu.has_conditions()) else { return };
        for (counter, subscriptions) in per_cpu.subscriptions_of(counters) {
            for subscriber in subscriptions.conditional().iter() {
                per_cpu.with(subscriber, |producer| self.next_window(current, producer.side(), counter, false));
            }
        }
    }

    /// Begins the next window of a counter, and returns whether the one before met the condition, if it is to be
    /// judged.
    #[inline(never)]
    fn next_window(&self, current: CurrentCpu<'_, impl Cpu>, stats: &CpuSampleStats, counter: u8, judge: bool) -> bool {
        stats.window(counter).is_none_or(|window| {
            let events = window.begin(|other| self.hal.count(current, other));
            !judge || window.is_met(events)
        })
    }

    /// Ends the window of a counter that has overflowed for each of `subscribers` that has a condition, and begins the
    /// next one. Returns those that get the sample: without those whose condition was not met.
    #[inline(never)]
    pub(super) fn choose(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpuSampling,
        counter: u8,
        subscribers: Subscribers,
    ) -> Subscribers {
        let conditional = per_cpu.subscriptions(counter).map(CounterSubscriptions::conditional).unwrap_or_default();
        let is_unmet = |subscriber: &Subscriber| {
            per_cpu.with(*subscriber, |producer| self.next_window(current, producer.side(), counter, true))
                == Some(false)
        };
        conditional.iter().filter(is_unmet).fold(subscribers, Subscribers::without)
    }
}
