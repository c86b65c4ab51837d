//! Means of repeated runs, and how far they may be off.

use std::collections::HashMap;

use protocol::CountRecord;
use serde::Serialize;

use terminal::format::real;

/// What the runs of a command had, for one event or for the time.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Spread<T> {
    /// The value of each run.
    pub runs: Vec<T>,
    /// Their mean.
    pub mean: f64,
    /// Standard error of the mean: the standard deviation of the runs, divided by the square root of their number.
    /// `None` for a single run.
    pub standard_error: Option<f64>,
}

impl<T: Copy> Spread<T> {
    /// Computes the mean and its standard error (Welford's method: no difference of large sums).
    pub fn of(runs: Vec<T>, value: impl Fn(T) -> f64) -> Self {
        let (mut number, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for run in &runs {
            number += 1.0;
            let difference = value(*run) - mean;
            mean += difference / number;
            squares += difference * (value(*run) - mean);
        }
        let standard_error = (number > 1.0).then(|| (squares / (number - 1.0) / number).sqrt());
        Self { runs, mean, standard_error }
    }

    /// Formats the standard error as perf does, in percent of the mean; empty for a single run.
    pub fn column(&self) -> String {
        match self.standard_error {
            None => String::new(),
            Some(error) if self.mean > 0.0 => format!("( +-{:6.2}% )", 100.0 * error / self.mean),
            Some(_) => "( +-     ?% )".to_owned(),
        }
    }
}

/// Returns the mean of the counts and times of several runs, for each event and processor of the last one.
pub fn mean(runs: &[Vec<CountRecord>]) -> Vec<CountRecord> {
    let key = |record: &CountRecord| (record.index, record.event.source, record.processor);
    let Some(last) = runs.last() else { return Vec::new() };
    let mut by_key: HashMap<_, Vec<&CountRecord>> = HashMap::new();
    for record in runs.iter().flatten() {
        by_key.entry(key(record)).or_default().push(record);
    }
    let of = |record: &CountRecord| {
        let same = by_key.get(&key(record)).map(Vec::as_slice).unwrap_or_default();
        let mean = |field: fn(&CountRecord) -> u64| {
            let sum: u128 = same.iter().map(|one| u128::from(field(one))).sum();
            let count = same.len().max(1) as u128;
            u64::try_from((sum + count / 2) / count).unwrap_or(u64::MAX)
        };
        let movement = same.iter().map(|one| one.movement).find(|movement| *movement != 0).unwrap_or_default();
        let disturbed = same.iter().find(|one| one.disturbed_register != 0).copied().unwrap_or(record);
        CountRecord {
            count: mean(|one| one.count),
            enabled: mean(|one| one.enabled),
            asleep: mean(|one| one.asleep),
            running: mean(|one| one.running),
            disturbed_register: disturbed.disturbed_register,
            disturbed_found: disturbed.disturbed_found,
            disturbed_expected: disturbed.disturbed_expected,
            disturbed_at: disturbed.disturbed_at,
            movement,
            ..*record
        }
    };
    last.iter().map(of).collect()
}

/// Returns the mean of counts, rounded.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates; counts are positive")]
pub fn rounded(spread: &Spread<u64>) -> u64 {
    spread.mean.round() as u64
}

/// Returns the spread of counts.
pub fn counts(runs: Vec<u64>) -> Spread<u64> {
    Spread::of(runs, real)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use fake_system::count;

    #[test]
    fn the_standard_error_is_that_of_the_textbook() {
        let spread = counts(vec![2, 4, 4, 4, 5, 5, 7, 9]);
        // The standard deviation is the root of 32 / 7.
        let expected = (32.0_f64 / 7.0).sqrt() / 8.0_f64.sqrt();
        assert!((spread.mean - 5.0).abs() < 1e-12 && (spread.standard_error.unwrap() - expected).abs() < 1e-12);
        assert_eq!(spread.column(), "( +- 15.12% )");
    }

    #[test]
    fn a_single_run_has_no_error() {
        assert_eq!((counts(vec![7]).standard_error, counts(vec![7]).column()), (None, String::new()));
        assert_eq!(counts(vec![0, 0]).column(), "( +-     ?% )");
    }

    #[test]
    fn runs_are_averaged_by_event_and_processor() {
        let disturbed = CountRecord { disturbed_register: 0x186, ..count(2, 1, 5, 30) };
        let runs = [vec![count(2, 0, 10, 20), disturbed], vec![count(2, 0, 13, 40), count(2, 1, 6, 10)]];
        let found = mean(&runs);
        let fields = |record: &CountRecord| (record.processor, record.count, record.enabled, record.disturbed_register);
        assert_eq!(found.iter().map(fields).collect::<Vec<_>>(), [(0, 12, 30, 0), (1, 6, 20, 0x186)]);
    }

    proptest! {
        /// Two passes over the runs give the same numbers.
        #[test]
        fn the_mean_and_the_error_are_those_of_two_passes(runs in prop::collection::vec(0_u32..1_000_000_000, 2..50)) {
            let values: Vec<f64> = runs.iter().map(|run| f64::from(*run)).collect();
            let number = values.iter().fold(0.0, |number, _| number + 1.0);
            let mean = values.iter().sum::<f64>() / number;
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let spread = counts(runs.iter().map(|run| u64::from(*run)).collect());
            prop_assert!((spread.mean - mean).abs() <= 1e-9 * mean.max(1.0));
            let expected = (squares / (number - 1.0) / number).sqrt();
            prop_assert!((spread.standard_error.unwrap() - expected).abs() <= 1e-6 * expected.max(1.0));
        }
    }
}
