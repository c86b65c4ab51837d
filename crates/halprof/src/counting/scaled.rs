//! Counts of events that took turns on the counters, scaled to all the time, and how far they may be off.
//!
//! The driver counts such an event in some of the rounds. What it counts in the others is estimated from the rate in
//! its own: the count is divided by the time running and multiplied by the time enabled, as perf does. The error comes
//! from how much the rates of the turns differ. It is the estimate for a ratio in a sample of a finite population
//! (Cochran, "Sampling Techniques", 6.4): the rounds are the population, and the turns the sample. It holds if the
//! phases of the program do not depend on the rounds.

use protocol::CountRecord;

use super::Times;
use super::numbers::{nearest, real, whole};

/// The fewest turns from which an error is estimated.
const LEAST_TURNS: u64 = 4;

/// A count for all the time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Scaled {
    /// Events, to the nearest whole number; what was counted if nothing was estimated.
    pub count: u64,
    /// Variance of the number, 0 if it was counted; `None` if too few turns tell.
    variance: Option<f64>,
    /// Turns beyond the first one, of which the variance was estimated; 0 if it did not take turns.
    freedom: u64,
}

/// Returns the variance of the scaled count of a record whose event had a counter for this share of the time.
fn variance(record: &CountRecord, share: f64) -> Option<f64> {
    let [squares, products, durations] =
        [record.squares, record.products, record.durations].map(|sum| real(whole(sum)));
    if record.turns < LEAST_TURNS {
        return None;
    }
    let turns = real(record.turns.into());
    let rate = real(record.count.into()) / real(record.running.into());
    // The sum of the squared differences between the counts of the turns and the rate times their durations.
    let differences = (squares - 2.0 * rate * products + rate * rate * durations).max(0.0);
    let of_a_turn = differences / (turns - 1.0);
    let rounds = turns / share;
    Some(rounds * rounds * (1.0 - share) * of_a_turn / turns)
}

impl Scaled {
    /// Returns the count of a record for all the time.
    #[must_use]
    pub fn of(record: &CountRecord) -> Self {
        let times = Times::of(record);
        if !times.is_scaled() {
            return Self { count: record.count, variance: Some(0.0), freedom: 0 };
        }
        Self {
            count: nearest(times.scale(record.count)),
            variance: variance(record, times.share()),
            freedom: record.turns.saturating_sub(1),
        }
    }

    /// Returns a number that was estimated in another way, with its variance.
    pub(super) const fn estimated(count: u64, variance: f64) -> Self {
        Self { count, variance: Some(variance), freedom: 0 }
    }

    /// Adds counts of different processors. The sum has the freedom of the count that has the least.
    #[must_use]
    pub fn sum(counts: impl Iterator<Item = Self>) -> Self {
        counts
            .reduce(|one, other| Self {
                count: one.count.saturating_add(other.count),
                variance: one.variance.zip(other.variance).map(|(one, other)| one + other),
                freedom: [one.freedom, other.freedom]
                    .into_iter()
                    .filter(|freedom| *freedom > 0)
                    .min()
                    .unwrap_or_default(),
            })
            .unwrap_or_default()
    }

    /// Returns the half-width of the interval in which the true number lies in 95 of 100 cases; `None` if too few turns
    /// tell. 0 if the event did not take turns.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        Some(quantile(self.freedom) * self.variance?.sqrt())
    }
}

/// The 97.5 % quantile of the normal distribution.
pub(super) const NORMAL: f64 = 1.959_964;

/// Returns the 97.5 % quantile of Student's distribution (Cornish and Fisher's expansion; Abramowitz and Stegun,
/// 26.7.5).
fn quantile(freedom: u64) -> f64 {
    if freedom == 0 {
        return NORMAL;
    }
    let (x, n) = (NORMAL, real(freedom.into()));
    let first = (x.powi(3) + x) / 4.0;
    let second = (5.0 * x.powi(5) + 16.0 * x.powi(3) + 3.0 * x) / 96.0;
    let third = (3.0 * x.powi(7) + 19.0 * x.powi(5) + 17.0 * x.powi(3) - 15.0 * x) / 384.0;
    x + first / n + second / n.powi(2) + third / n.powi(3)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counting::{below, count};

    /// A record of an event with these turns, each a count and a duration, of `enabled` units of time.
    fn record(turns: &[(u64, u64)], enabled: u64) -> CountRecord {
        let sum = |of: fn(u64, u64) -> u64| turns.iter().map(|(count, time)| of(*count, *time)).sum::<u64>();
        CountRecord {
            count: sum(|count, _| count),
            running: sum(|_, time| time),
            turns: turns.len() as u64,
            squares: [sum(|count, _| count * count), 0],
            products: [sum(|count, time| count * time), 0],
            durations: [sum(|_, time| time * time), 0],
            ..count(0, 0, enabled)
        }
    }

    #[test]
    fn a_constant_rate_is_scaled_without_an_error() {
        let turns = [(500, 100), (450, 90), (600, 120), (500, 100)];
        let found = Scaled::of(&record(&turns, 1_640));
        assert_eq!((found.count, found.error()), (8_200, Some(0.0)));
    }

    #[test]
    fn a_count_without_turns_is_not_changed() {
        let found = Scaled::of(&count(0, 1_234, 1_000));
        assert_eq!((found.count, found.error()), (1_234, Some(0.0)));
    }

    #[test]
    fn time_asleep_does_not_scale_a_count() {
        let awake = CountRecord { running: 600, asleep: 400, ..count(0, 60, 1_000) };
        assert_eq!(Scaled::of(&awake), Scaled { count: 60, variance: Some(0.0), freedom: 0 });
        let turns = Scaled::of(&CountRecord { running: 300, asleep: 400, ..count(0, 60, 1_000) });
        assert_eq!((turns.count, turns.error()), (120, None));
    }

    /// The rate of all turns is one of the numbers that the variance is estimated from (Cochran, 6.4).
    #[test]
    fn the_freedom_is_one_less_than_the_turns() {
        let turns = [(500, 100), (400, 100), (450, 100), (470, 100)];
        assert_eq!(Scaled::of(&record(&turns, 800)).freedom, 3);
    }

    #[test]
    fn too_few_turns_give_no_error() {
        assert_eq!(Scaled::of(&record(&[(500, 100), (400, 100), (450, 100)], 600)).error(), None);
    }

    #[test]
    fn an_event_that_never_had_a_counter_has_the_count_zero() {
        let never = CountRecord { running: 0, ..count(0, 0, 1_000) };
        let found = Scaled::of(&never);
        assert_eq!((found.count, found.error()), (0, Some(0.0)));
    }

    fn any_scaled() -> impl Strategy<Value = Scaled> {
        let exact = (0..1_000_000_u64).prop_map(|count| Scaled { count, variance: Some(0.0), freedom: 0 });
        let variance = prop::option::weighted(0.9, (0..1_000_000_u32).prop_map(f64::from));
        let scaled = (0..1_000_000_u64, variance, 1..100_u64);
        let scaled = scaled.prop_map(|(count, variance, freedom)| Scaled { count, variance, freedom });
        prop_oneof![exact, scaled]
    }

    proptest! {
        /// Counts and variances add up. The sum has the least freedom of those that were estimated, and no error if one
        /// of them has none.
        #[test]
        fn a_sum_has_the_counts_and_the_errors_of_all_parts(parts in prop::collection::vec(any_scaled(), 0..6)) {
            let found = Scaled::sum(parts.iter().copied());
            prop_assert_eq!(found.count, parts.iter().map(|part| part.count).sum::<u64>());
            let freedoms: Vec<u64> = parts.iter().map(|part| part.freedom).filter(|freedom| *freedom > 0).collect();
            prop_assert_eq!(found.freedom, freedoms.iter().copied().min().unwrap_or(0));
            if parts.iter().any(|part| part.variance.is_none()) {
                prop_assert_eq!(found.error(), None);
            } else if !parts.is_empty() {
                let variance: f64 = parts.iter().map(|part| part.variance.unwrap()).sum();
                prop_assert!((found.variance.unwrap() - variance).abs() < 1e-6);
                prop_assert_eq!(found.error().unwrap() > 0.0, variance > 0.0);
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (freedom, tabulated) in [(3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1_000, 1.962)] {
            assert!((quantile(freedom) - tabulated).abs() < 0.03, "{freedom}: {}", quantile(freedom));
        }
    }

    /// Returns how many of 10,000 programs have a true count in the interval. A round begins a phase with a random rate
    /// in `percent` of 100 cases.
    fn covered(percent: u64) -> u64 {
        const PROGRAMS: u64 = 10_000;
        const SHARE: u64 = 3;
        const ROUNDS: usize = 300;
        let (mut covered, mut state) = (0, 1);
        for _ in 0..PROGRAMS {
            let mut rate = 1_000;
            let mut round = || {
                if below(100, &mut state) < percent {
                    rate = 200 + below(1_800, &mut state);
                }
                let time = 90 + below(20, &mut state);
                (rate * time, time)
            };
            let rounds: Vec<(u64, u64)> = (0..ROUNDS).map(|_| round()).collect();
            let offset = below(SHARE, &mut state);
            let turns: Vec<_> = rounds
                .iter()
                .copied()
                .zip(0..)
                .filter(|(_, number)| number % SHARE == offset)
                .map(|(turn, _)| turn)
                .collect();
            let truth = rounds.iter().map(|(count, _)| count).sum::<u64>();
            let found = Scaled::of(&record(&turns, rounds.iter().map(|(_, time)| time).sum()));
            covered += u64::from(real(found.count.abs_diff(truth).into()) <= found.error().unwrap());
        }
        covered
    }

    #[test]
    fn the_interval_covers_the_true_count_in_95_of_100_programs() {
        let of_one_round = covered(100);
        assert!((9_430..=9_570).contains(&of_one_round), "{of_one_round}");
        // A longer phase is seen by a turn on either side: the error is smaller than estimated.
        let of_several = covered(50);
        assert!(of_several > 9_500, "{of_several}");
    }
}
