//! The share of a count that is of some processes, estimated from samples.

use super::numbers::real;
use super::scaled::{NORMAL, Scaled};

/// Samples of an event on a processor, each of which stands for a number of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampleSum {
    /// Number of samples.
    pub samples: u64,
    /// The events for which they stand.
    pub events: u128,
    /// Sum of the squares of these numbers.
    pub squares: u128,
}

impl SampleSum {
    /// Adds a sample that stands for so many events.
    pub fn add(&mut self, events: u64) {
        self.samples = self.samples.saturating_add(1);
        self.events = self.events.saturating_add(events.into());
        self.squares = self.squares.saturating_add(u128::from(events).pow(2));
    }
}

/// The samples of an event on a processor: those of what was chosen, and all others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledShare {
    /// Of the chosen processes and threads.
    pub own: SampleSum,
    /// Of everything else.
    pub others: SampleSum,
}

impl SampledShare {
    /// Returns how many of the `total` events that the processor counted are of what was chosen.
    ///
    /// The samples are taken for independent ones, and the error is that of a share by Agresti and Coull ("Approximate
    /// is better than exact", 1998): it is not 0 where no sample, or each, is of what was chosen. Without any sample,
    /// the number is 0 and the error the total.
    #[must_use]
    pub fn of(&self, total: u64) -> Scaled {
        let all = self.own.events.saturating_add(self.others.events);
        let total_events = real(total.into());
        if all == 0 {
            return Scaled::estimated(0, (total_events / NORMAL).powi(2));
        }
        let share = real(self.own.events) / real(all);
        // As many samples of equal weight tell as much.
        let samples = real(all).powi(2) / real(self.own.squares.saturating_add(self.others.squares));
        let shifted = (share * samples + 2.0) / (samples + 4.0);
        let variance = shifted * (1.0 - shifted) / (samples + 4.0);
        Scaled::estimated(self.part_of(total, all), total_events.powi(2) * variance)
    }

    /// Returns the chosen part of a total. The parts of all processes have the total as their sum, or less than one
    /// event each is missing.
    fn part_of(&self, total: u64, all: u128) -> u64 {
        // A sum of weights has 64 bits in 100 years of samples.
        let product = u128::from(total).saturating_mul(self.own.events);
        u64::try_from(product / all).unwrap_or(total)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counting::below;

    fn sum(weights: impl IntoIterator<Item = u64>) -> SampleSum {
        let mut sum = SampleSum::default();
        weights.into_iter().for_each(|events| sum.add(events));
        sum
    }

    #[test]
    fn a_share_of_ten_thousand_samples_is_true_to_one_percent_of_the_total() {
        let share = SampledShare { own: sum(vec![1_000; 5_000]), others: sum(vec![1_000; 5_000]) };
        let found = share.of(10_000_000);
        let error = found.error().unwrap() / 10_000_000.0;
        assert_eq!(found.count, 5_000_000);
        assert!((0.0097..0.0099).contains(&error), "{error}");
    }

    #[test]
    fn what_has_no_sample_or_each_sample_has_an_error_all_the_same() {
        let none = SampledShare { own: sum([]), others: sum([1_000; 100]) }.of(100_000);
        let each = SampledShare { own: sum([1_000; 100]), others: sum([]) }.of(100_000);
        assert_eq!((none.count, each.count), (0, 100_000));
        // The rule of three: 3 of 100 samples.
        for found in [none, each] {
            let error = found.error().unwrap();
            assert!((2_000.0..4_000.0).contains(&error), "{error}");
        }
        let unknown = SampledShare::default().of(500);
        assert_eq!((unknown.count, unknown.error().map(f64::round)), (0, Some(500.0)));
    }

    /// Returns the true number of a process that shares a CPU with others in random turns, and the estimate: a sample
    /// is of the process that runs when its interval is over, and intervals are adjusted to a frequency.
    fn history(seed: &mut u64) -> (u64, Scaled) {
        let (processes, longest) = (1 + below(5, seed), 10 + below(2_000, seed));
        let (mut share, mut truth, mut total) = (SampledShare::default(), 0, 0);
        let (mut interval, mut since) = (50 + below(100, seed), 0);
        for _ in 0..200 + below(400, seed) {
            let (is_own, turn) = (below(processes, seed) == 0, 1 + below(longest, seed));
            total += turn;
            truth += if is_own { turn } else { 0 };
            since += turn;
            while since >= interval {
                since -= interval;
                if is_own { &mut share.own } else { &mut share.others }.add(interval);
                interval = 50 + below(100, seed);
            }
        }
        (truth, share.of(total))
    }

    #[test]
    fn the_error_covers_at_least_95_of_100_histories() {
        const HISTORIES: u64 = 10_000;
        let mut seed = 11;
        let is_covered = |_: &u64| {
            let (truth, found) = history(&mut seed);
            real(found.count.abs_diff(truth).into()) <= found.error().unwrap() + 1.0
        };
        let covered = (0..HISTORIES).filter(is_covered).count();
        assert!(covered >= 9_500, "{covered} of {HISTORIES}");
    }

    proptest! {
        #[test]
        fn the_parts_of_all_processes_are_the_total(
            weights in prop::collection::vec((0..5_usize, 1..1_000_000_u64), 1..200), total in any::<u64>(),
        ) {
            let of = |is_it: &dyn Fn(usize) -> bool| {
                sum(weights.iter().filter(|(process, _)| is_it(*process)).map(|(_, events)| *events))
            };
            let part = |process| SampledShare { own: of(&|one| one == process), others: of(&|one| one != process) };
            let parts: u128 = (0..5).map(|process| u128::from(part(process).of(total).count)).sum();
            prop_assert!(u128::from(total) - parts < 5, "{parts} of {total}");
        }
    }
}
