//! What has been counted over restarts of a session: sums that only grow.

use std::collections::BTreeMap;

use protocol::{CountRecord, Event};

use super::Times;

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

/// The sums of an event. Times are summed over CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Total {
    /// Events that were counted.
    pub count: u64,
    /// Events extrapolated to all the time.
    pub scaled: f64,
    /// Times in which the session ran.
    pub times: Times,
}

/// The sums of every event.
#[derive(Debug, Default)]
pub struct Totals {
    sums: BTreeMap<Key, Total>,
    /// Time in which an event had no counter yet, by event and CPU: the next turn stands for it.
    waiting: BTreeMap<(u32, u32), u64>,
}

impl Totals {
    /// Adds what was counted between two readings of one session, for each CPU by itself if `by_cpu`.
    pub fn add(&mut self, difference: &[CountRecord], by_cpu: bool) {
        for record in difference {
            let CountRecord { index, event: Event { core_type, .. }, processor, count, running, .. } = *record;
            let key = Key { event: index, core_type, processor: by_cpu.then_some(processor) };
            let times = Times::of(record);
            let waiting = self.waiting.entry((index, processor)).or_default();
            let sum = self.sums.entry(key).or_default();
            sum.count = sum.count.saturating_add(count);
            sum.times = sum.times.plus(times);
            *waiting = waiting.saturating_add(times.enabled);
            if running > 0 {
                sum.scaled += Times { enabled: *waiting, running }.scale(count);
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
    use proptest::prelude::*;

    use super::super::numbers::real;
    use super::*;
    use crate::counting::count;

    fn turn(count_of: u64, running: u64, enabled: u64) -> CountRecord {
        CountRecord { running, ..count(0, count_of, enabled) }
    }

    fn total(count: u64, scaled: f64, enabled: u64, running: u64) -> Total {
        Total { count, scaled, times: Times { enabled, running } }
    }

    fn one(totals: &Totals) -> Total {
        *totals.iter().next().unwrap().1
    }

    #[test]
    fn without_turns_the_scaled_count_is_the_count() {
        let mut totals = Totals::default();
        totals.add(&[count(0, 100, 1_000), count(1, 50, 1_000)], false);
        totals.add(&[count(0, 7, 10), count(1, 5, 10)], false);
        assert_eq!(one(&totals), total(162, 162.0, 2_020, 2_020));
    }

    #[test]
    fn a_turn_stands_for_the_time_without_a_counter_before_it() {
        let mut totals = Totals::default();
        totals.add(&[turn(0, 0, 100)], false);
        assert_eq!(one(&totals), total(0, 0.0, 100, 0));
        totals.add(&[turn(30, 50, 100)], false);
        assert_eq!(one(&totals), total(30, 120.0, 200, 50));
        totals.add(&[turn(0, 0, 100)], false);
        totals.end_session();
        totals.add(&[turn(10, 100, 100)], false);
        assert_eq!(one(&totals), total(40, 130.0, 400, 150), "a gap is not extrapolated");
    }

    #[test]
    fn each_cpu_can_have_its_own() {
        let mut totals = Totals::default();
        totals.add(&[count(0, 100, 1_000), count(1, 50, 1_000)], true);
        let found: Vec<_> = totals.iter().map(|(key, total)| (key.processor, total.count)).collect();
        assert_eq!(found, [(Some(0), 100), (Some(1), 50)]);
    }

    #[test]
    fn time_asleep_is_no_time() {
        let mut totals = Totals::default();
        totals.add(&[CountRecord { asleep: 400, ..turn(60, 600, 1_000) }], false);
        assert_eq!(one(&totals), total(60, 60.0, 600, 600));
    }

    /// The share of the time with a counter, which readers compute from both sums, is at most all of it.
    #[test]
    fn an_event_has_a_counter_for_no_longer_than_it_was_enabled() {
        let mut totals = Totals::default();
        totals.add(&[turn(60, 1_001, 1_000)], false);
        assert_eq!(one(&totals), total(60, 60.0, 1_000, 1_000));
    }

    #[test]
    fn each_core_type_has_its_own() {
        let mut totals = Totals::default();
        let on_core_type =
            |core_type, record: CountRecord| CountRecord { event: Event { core_type, ..record.event }, ..record };
        totals.add(&[on_core_type(1, count(0, 100, 1_000)), on_core_type(2, count(1, 50, 1_000))], false);
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
                together.add(&[record(*one)], false);
            }
            for index in 1..3 {
                let of_cpu = |cpu: u32| {
                    let mut alone = Totals::default();
                    let own = turns.iter().filter(|one| (one.0, one.1) == (cpu, index));
                    own.for_each(|one| alone.add(&[record(*one)], false));
                    alone.iter().next().map(|(_, total)| *total).unwrap_or_default()
                };
                let parts = [0, 1, 2].map(of_cpu);
                let found = together.iter().find(|(key, _)| key.event == index).map(|(_, total)| *total).unwrap_or_default();
                let scaled: f64 = parts.iter().map(|part| part.scaled).sum();
                prop_assert!((found.scaled - scaled).abs() <= 1e-9 * scaled, "{} instead of {scaled}", found.scaled);
                prop_assert_eq!(found.count, parts.iter().map(|part| part.count).sum::<u64>());
                prop_assert_eq!(found.times, parts.iter().map(|part| part.times).fold(Times::default(), Times::plus));
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
                totals.add(&[turn(count, running, running + more)], false);
                let now = one(&totals);
                prop_assert!(now.count >= before.count && now.scaled >= before.scaled && now.times.enabled >= before.times.enabled);
                prop_assert!(now.scaled + 1e-6 >= real(now.count.into()) && now.times.running <= now.times.enabled);
                before = now;
            }
        }
    }
}
