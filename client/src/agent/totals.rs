//! What has been counted since the agent began: sums that only grow.

use std::collections::BTreeMap;

use agent::config::By;
use protocol::CountRecord;

use crate::format::real;
use crate::scaling::share_running;

/// What has a sum of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Index of the event in the request.
    pub event: u32,
    /// Number of the core type, or 0.
    pub core_type: u32,
    /// The CPU, if each has a sum of its own.
    pub processor: Option<u32>,
}

/// The sums of an event. Times are in units of 100 ns, summed over CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Total {
    /// Events that were counted.
    pub count: u64,
    /// Events extrapolated to all the time.
    pub scaled: f64,
    /// Time in which the session ran and the machine was awake.
    pub enabled: u64,
    /// Part of it in which the event had a counter.
    pub running: u64,
}

/// The sums of every event.
#[derive(Debug, Default)]
pub struct Totals {
    sums: BTreeMap<Key, Total>,
    /// Time in which an event had no counter yet, by event and CPU: the next turn stands for it.
    waiting: BTreeMap<(u32, u32), u64>,
}

impl Totals {
    /// Adds what was counted between two readings.
    pub fn add(&mut self, difference: &[CountRecord], by: By) {
        for record in difference {
            let CountRecord { index, core_type, processor, count, running, .. } = *record;
            let key = Key { event: index, core_type, processor: (by == By::Cpu).then_some(processor) };
            let enabled = record.enabled.saturating_sub(record.asleep);
            let waiting = self.waiting.entry((index, processor)).or_default();
            let sum = self.sums.entry(key).or_default();
            sum.count = sum.count.saturating_add(count);
            sum.enabled = sum.enabled.saturating_add(enabled);
            sum.running = sum.running.saturating_add(running.min(enabled));
            *waiting = waiting.saturating_add(enabled);
            if running > 0 {
                sum.scaled += real(count) / share_running(running, *waiting);
                *waiting = 0;
            }
        }
    }

    /// Forgets for which time the next turns stand: the session has ended.
    pub fn end_session(&mut self) {
        self.waiting.clear();
    }

    /// Begins at zero.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the sums, by event, core type and CPU.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Total)> {
        self.sums.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::count;
    use proptest::prelude::*;

    fn turn(count_of: u64, running: u64, enabled: u64) -> CountRecord {
        CountRecord { running, ..count(2, 0, count_of, enabled) }
    }

    fn one(totals: &Totals) -> Total {
        *totals.iter().next().unwrap().1
    }

    #[test]
    fn without_turns_the_scaled_count_is_the_count() {
        let mut totals = Totals::default();
        totals.add(&[count(2, 0, 100, 1_000), count(2, 1, 50, 1_000)], By::CoreType);
        totals.add(&[count(2, 0, 7, 10), count(2, 1, 5, 10)], By::CoreType);
        assert_eq!(one(&totals), Total { count: 162, scaled: 162.0, enabled: 2_020, running: 2_020 });
    }

    #[test]
    fn a_turn_stands_for_the_time_without_a_counter_before_it() {
        let mut totals = Totals::default();
        totals.add(&[turn(0, 0, 100)], By::CoreType);
        assert_eq!(one(&totals), Total { count: 0, scaled: 0.0, enabled: 100, running: 0 });
        totals.add(&[turn(30, 50, 100)], By::CoreType);
        assert_eq!(one(&totals), Total { count: 30, scaled: 120.0, enabled: 200, running: 50 });
        totals.add(&[turn(0, 0, 100)], By::CoreType);
        totals.end_session();
        totals.add(&[turn(10, 100, 100)], By::CoreType);
        assert_eq!(
            one(&totals),
            Total { count: 40, scaled: 130.0, enabled: 400, running: 150 },
            "a gap is not extrapolated"
        );
    }

    #[test]
    fn each_cpu_can_have_its_own() {
        let mut totals = Totals::default();
        totals.add(&[count(2, 0, 100, 1_000), count(2, 1, 50, 1_000)], By::Cpu);
        let found: Vec<_> = totals.iter().map(|(key, total)| (key.processor, total.count)).collect();
        assert_eq!(found, [(Some(0), 100), (Some(1), 50)]);
    }

    #[test]
    fn time_asleep_is_no_time() {
        let mut totals = Totals::default();
        totals.add(&[CountRecord { asleep: 400, ..turn(60, 600, 1_000) }], By::CoreType);
        assert_eq!(one(&totals), Total { count: 60, scaled: 60.0, enabled: 600, running: 600 });
    }

    /// The share of the time with a counter, which readers compute from both sums, is at most all of it.
    #[test]
    fn an_event_has_a_counter_for_no_longer_than_it_was_enabled() {
        let mut totals = Totals::default();
        totals.add(&[turn(60, 1_001, 1_000)], By::CoreType);
        assert_eq!(one(&totals), Total { count: 60, scaled: 60.0, enabled: 1_000, running: 1_000 });
    }

    #[test]
    fn each_core_type_has_its_own() {
        let mut totals = Totals::default();
        let on_core_type = |core_type, record| CountRecord { core_type, ..record };
        totals.add(&[on_core_type(1, count(2, 0, 100, 1_000)), on_core_type(2, count(2, 1, 50, 1_000))], By::CoreType);
        let found: Vec<_> = totals.iter().map(|(key, total)| (key.core_type, total.count)).collect();
        assert_eq!(found, [(1, 100), (2, 50)]);
    }

    proptest! {
        /// A CPU's turn stands for the time that it waited itself: the sums of all CPUs are those of each one alone.
        #[test]
        fn each_cpu_waits_for_its_own_turn(
            turns in prop::collection::vec((0..3_u32, 1..3_u32, 0..1_000_u64, prop_oneof![Just(0), 1..100_u64], 0..100_u64), 1..30),
        ) {
            let record = |(cpu, index, count, running, more): (u32, u32, u64, u64, u64)| {
                let count = if running == 0 { 0 } else { count };
                CountRecord { index, processor: cpu, ..turn(count, running, running + more) }
            };
            let mut together = Totals::default();
            for one in &turns {
                together.add(&[record(*one)], By::CoreType);
            }
            for index in 1..3 {
                let of_cpu = |cpu: u32| {
                    let mut alone = Totals::default();
                    let own = turns.iter().filter(|one| (one.0, one.1) == (cpu, index));
                    own.for_each(|one| alone.add(&[record(*one)], By::CoreType));
                    alone.iter().next().map(|(_, total)| *total).unwrap_or_default()
                };
                let parts = [0, 1, 2].map(of_cpu);
                let found = together.iter().find(|(key, _)| key.event == index).map(|(_, total)| *total).unwrap_or_default();
                let scaled: f64 = parts.iter().map(|part| part.scaled).sum();
                prop_assert!((found.scaled - scaled).abs() <= 1e-9 * scaled, "{} instead of {scaled}", found.scaled);
                prop_assert_eq!(found.count, parts.iter().map(|part| part.count).sum::<u64>());
                prop_assert_eq!(found.enabled, parts.iter().map(|part| part.enabled).sum::<u64>());
                prop_assert_eq!(found.running, parts.iter().map(|part| part.running).sum::<u64>());
            }
        }

        #[test]
        fn sums_never_fall_and_scaled_counts_are_at_least_the_counts(
            turns in prop::collection::vec((0..1_000_u64, 0..100_u64, 0..100_u64), 1..30),
        ) {
            let mut totals = Totals::default();
            let mut before = Total::default();
            for (count, running, more) in turns {
                let count = if running == 0 { 0 } else { count };
                totals.add(&[turn(count, running, running + more)], By::CoreType);
                let now = one(&totals);
                prop_assert!(now.count >= before.count && now.scaled >= before.scaled && now.enabled >= before.enabled);
                prop_assert!(now.scaled + 1e-6 >= real(now.count) && now.running <= now.enabled);
                before = now;
            }
        }
    }
}
