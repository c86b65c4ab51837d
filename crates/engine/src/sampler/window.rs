//! Conditions of samples: of an overflow there is a sample only if two other counts had a certain ratio in the window
//! that it ends.
//!
//! A window is the time of the processor from one overflow of the counter that was served to the next, whatever threads
//! run in it. Both counts are read where the counters run again, at its beginning and at its end, so that they are of
//! the same time: an interval that is adapted and a late interrupt change the length of a window, but not its ratio.

use core::sync::atomic::Ordering;

use pmu::state::CounterSet;
use pmu::{Cpu, CurrentCpu, PerCpu};

use super::Sampler;
use super::per_cpu::PerCpuSampling;
use super::sample_stats::SampleStats;
use super::subscriptions::Subscribers;
use crate::event::Condition;
use crate::sync::AtomicU64;

/// The condition of the samples of a counter for a subscriber, and the counts at the beginning of the window. Only the
/// processor accesses it, at PROFILE_LEVEL.
#[derive(Debug, Default)]
pub struct Window {
    /// The two counters, and in the upper half [`CONDITION`] and [`ABOVE`]; 0 without a condition.
    what: AtomicU64,
    /// [`Condition::limit`].
    limit: AtomicU64,
    /// Their counts at its beginning.
    counts: [AtomicU64; 2],
}

/// There is a condition.
const CONDITION: u32 = 1;

/// The ratio has to be above the limit, not below it.
const ABOVE: u32 = 2;

impl Window {
    /// Sets the condition: its ratio is of these counters.
    pub fn set(&self, condition: Condition, counters: [u8; 2]) {
        let [first, second] = counters.map(u16::from);
        let flags = CONDITION | if condition.is_above { ABOVE } else { 0 };
        let [low, high]: [u16; 2] = zerocopy::transmute!(flags);
        let what: u64 = zerocopy::transmute!([first, second, low, high]);
        let limit: u64 = zerocopy::transmute!(condition.limit);
        self.what.store(what, Ordering::Relaxed);
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Returns whether there is a condition.
    pub fn has_condition(&self) -> bool {
        self.what.load(Ordering::Relaxed) != 0
    }

    /// Begins a window: `count` returns the count of a counter. Returns how much each has counted in the one before.
    fn begin(&self, count: impl Fn(u8) -> u64) -> [u64; 2] {
        let [first, second, ..]: [u16; 4] = zerocopy::transmute!(self.what.load(Ordering::Relaxed));
        let mut counted = [0; 2];
        for ((cell, counter), counted) in self.counts.iter().zip([first, second]).zip(&mut counted) {
            let now = count((counter & 0xFF) as u8);
            *counted = now.wrapping_sub(cell.load(Ordering::Relaxed));
            cell.store(now, Ordering::Relaxed);
        }
        counted
    }

    /// Ends the window, and begins the next one. Returns whether it met the condition.
    fn end(&self, count: impl Fn(u8) -> u64) -> bool {
        // Multiplied, because a division is slow, and there may be nothing to divide by.
        let [[first, second], [limit, divisor]] = [self.begin(count), self.limit()].map(|pair| pair.map(u128::from));
        let [.., low, _]: [u16; 4] = zerocopy::transmute!(self.what.load(Ordering::Relaxed));
        let (ratio, limit) = (first * divisor, second * limit);
        if u32::from(low) & ABOVE == 0 { ratio < limit } else { ratio > limit }
    }

    fn limit(&self) -> [u64; 2] {
        let limit: [u32; 2] = zerocopy::transmute!(self.limit.load(Ordering::Relaxed));
        limit.map(u64::from)
    }
}

impl Sampler {
    /// Begins a window of each of `counters` of the current processor that has a condition. They run.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn begin_windows(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return };
        for (counter, subscriptions) in per_cpu.subscriptions_of(counters) {
            for subscriber in subscriptions.conditional().iter() {
                let begin = |stats: &SampleStats| _ = stats.window.begin(|counter| self.hal.count(current, counter));
                per_cpu.count_for(subscriber, counter, begin);
            }
        }
    }

    /// Returns the subscribers that get the sample of a counter whose interval is adapted, or that has a condition. The
    /// samples of an adapted interval may come much too often: it is lengthened without waiting for the next tick.
    #[inline(never)]
    pub(super) fn uncommon(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        owned: &PerCpu<PerCpuSampling>,
        counter: u8,
    ) -> Subscribers {
        let per_cpu = owned.extension();
        let Some(subscriptions) = per_cpu.subscriptions(counter) else { return Subscribers::default() };
        let loaded = owned.interval(counter);
        subscriptions.reloaded(loaded);
        if let Some(longer) = subscriptions.after_overflow(loaded).filter(|next| *next != loaded) {
            self.hal.set_counter_interval(current.index(), counter, longer);
        }
        let conditional = subscriptions.conditional();
        let mut all = subscriptions.subscribers();
        if !conditional.is_empty() {
            all = self.end_windows(current, per_cpu, counter, all, conditional);
        }
        all
    }

    /// Ends the window of a counter for each of its subscribers that have a condition. Returns those of `all` for which
    /// there is a sample, and counts the others.
    #[inline(never)]
    fn end_windows(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        per_cpu: &PerCpuSampling,
        counter: u8,
        mut all: Subscribers,
        conditional: Subscribers,
    ) -> Subscribers {
        for subscriber in conditional.iter() {
            per_cpu.count_for(subscriber, counter, |stats| {
                if !stats.window.end(|counter| self.hal.count(current, counter)) {
                    stats.withhold();
                    all = all.without(subscriber);
                }
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns whether a window meets the condition in which counter 3 counts `first` and counter 7 counts `second`.
    fn is_met(condition: Condition, first: u64, second: u64, before: [u64; 2]) -> bool {
        let window = Window::default();
        assert!(!window.has_condition());
        window.set(condition, [3, 7]);
        assert!(window.has_condition());
        let count = |of: [u64; 2]| move |counter| if counter == 3 { of[0] } else { of[1] };
        window.begin(count(before));
        window.end(count([before[0].wrapping_add(first), before[1].wrapping_add(second)]))
    }

    #[test]
    fn a_ratio_is_strictly_below_or_above_the_limit() {
        for (first, second, below, above) in [
            (499_999, 1_000_000, true, false),
            (500_000, 1_000_000, false, false),
            (500_001, 1_000_000, false, true),
            (0, 1, true, false),
            (0, 0, false, false),
            (1, 0, false, true),
        ] {
            for limit in [[1, 2], [0x7FFF_FFFF, 0xFFFF_FFFE]] {
                let ratio = [0, 1];
                for (is_above, wanted) in [(false, below), (true, above)] {
                    let condition = Condition { ratio, is_above, limit };
                    assert_eq!(is_met(condition, first, second, [0, 0]), wanted, "{first}/{second}, {condition:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn no_count_and_no_limit_overflows(
            first: u64,
            second: u64,
            limit: [u32; 2],
            before: [u64; 2],
            is_above: bool,
        ) {
            let [over, under] = limit.map(num_of);
            let (ratio, of_limit) = (num_of(first) * under, num_of(second) * over);
            let wanted = if is_above { ratio > of_limit } else { ratio < of_limit };
            prop_assert_eq!(is_met(Condition { ratio: [0, 1], is_above, limit }, first, second, before), wanted);
        }
    }

    fn num_of(number: impl Into<u128>) -> u128 {
        number.into()
    }
}
