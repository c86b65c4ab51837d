//! The change between two measurements, and its confidence interval.
//!
//! A change of shares has Newcombe's interval (R. G. Newcombe, "Interval estimation for the difference between
//! independent proportions", Statistics in Medicine 17, 1998, method 10), which is made of Wilson's intervals of both
//! shares. A relative change has the interval of the logarithm of the ratio: its variance is the sum of the relative
//! variances of both numbers.

use crate::proportion::{Interval, effective_samples, real};
use crate::sample_counts::Total;

/// The most degrees of freedom for which Student's distribution differs from the normal distribution here.
const MOST_FREEDOM: f64 = 1000.0;

/// The probability with which intervals contain the true changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Confidence {
    /// Probability with which an interval lies beyond the true change, on one side.
    tail: f64,
}

impl Confidence {
    /// Each interval contains its true change in 95 of 100 cases.
    pub const OF_EACH: Self = Self { tail: 0.025 };

    /// Returns the confidence with which all of `number` intervals contain their true changes, in 95 of 100 cases (C.
    /// E. Bonferroni's correction).
    #[must_use]
    pub fn of_all(number: usize) -> Self {
        Self { tail: Self::OF_EACH.tail / real(number.max(1) as u64) }
    }

    /// Returns how many standard deviations of a normal distribution an interval extends on each side.
    fn normal(self) -> f64 {
        bisect(self.tail, normal_tail)
    }

    /// Returns the same for Student's distribution with `freedom` degrees of freedom, rounded down.
    fn student(self, freedom: f64) -> f64 {
        if freedom > MOST_FREEDOM { self.normal() } else { bisect(self.tail, |x| student_tail(x, freedom)) }
    }
}

/// Returns the number at which the descending function `tail` is `wanted`.
fn bisect(wanted: f64, tail: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while tail(high) > wanted && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if tail(middle) > wanted { low = middle } else { high = middle }
    }
    high
}

/// Returns the probability that a normal variable exceeds `x`, for `x` from 0: by a series up to 3, and by Laplace's
/// continued fraction beyond (Abramowitz and Stegun, 26.2.10 and 26.2.14).
fn normal_tail(x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    if x < 3.0 {
        let (mut term, mut sum) = (x, x);
        for step in 1..100_u32 {
            term *= x * x / f64::from(2 * step + 1);
            sum += term;
        }
        return 0.5 - density * sum;
    }
    let fraction = (1..=100_u32).rev().fold(x, |below, step| x + f64::from(step) / below);
    density / fraction
}

/// Returns the probability that a variable of Student's distribution exceeds `t`, for whole degrees of freedom
/// (Abramowitz and Stegun, 26.7.3 and 26.7.4).
fn student_tail(t: f64, freedom: f64) -> f64 {
    // A whole number can have come out a little smaller.
    let freedom = (freedom + 1e-6).floor().max(1.0);
    let angle = (t / freedom.sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    let is_odd = freedom % 2.0 > 0.5;
    let (mut term, mut next) = if is_odd { (cosine, 3.0) } else { (1.0, 2.0) };
    let mut sum = if freedom > 1.0 { term } else { 0.0 };
    while next < freedom {
        term *= cosine * cosine * (next - 1.0) / next;
        sum += term;
        next += 2.0;
    }
    let inside = if is_odd { (angle + sine * sum) * 2.0 / std::f64::consts::PI } else { sine * sum };
    (1.0 - inside) / 2.0
}

/// A number with the error of its measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Its variance.
    pub variance: f64,
    /// Degrees of freedom of the variance; infinite if it is known.
    pub freedom: f64,
}

impl Estimate {
    /// Returns the events that the samples of a total represent. Their number has Poisson's distribution.
    #[must_use]
    pub fn of_total(total: &Total) -> Self {
        Self { value: real(total.weight.events), variance: real(total.squares), freedom: f64::INFINITY }
    }

    /// Returns the events of a part of a total, whose samples represent as many events as the others on average.
    #[must_use]
    pub fn of_part(events: u64, total: &Total) -> Self {
        let each = if total.weight.events == 0 { 0.0 } else { real(total.squares) / real(total.weight.events) };
        Self { value: real(events), variance: real(events) * each, freedom: f64::INFINITY }
    }

    /// Returns the number for one of `units`.
    #[must_use]
    pub fn per(&self, units: f64) -> Self {
        Self { value: self.value / units, variance: self.variance / (units * units), freedom: self.freedom }
    }

    fn relative_variance(&self) -> f64 {
        self.variance / (self.value * self.value)
    }
}

/// A change, and its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The new value minus the old one, or that in relation to the old one.
    pub change: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Change {
    /// Returns the difference of two shares, each with the total of its source.
    #[must_use]
    pub fn of_shares(old: (f64, &Total), new: (f64, &Total), confidence: Confidence) -> Self {
        let z = confidence.normal();
        let interval = |(share, total): (f64, &Total)| {
            Interval::wilson_within(share, effective_samples(real(total.weight.events), real(total.squares)), z)
        };
        let (before, after) = (interval(old), interval(new));
        let ((old, _), (new, _)) = (old, new);
        let change = new - old;
        Self {
            change,
            low: change - (new - after.low).hypot(before.high - old),
            high: change + (after.high - new).hypot(old - before.low),
        }
    }

    /// Returns the difference of two amounts as a share of `whole`, which is known. Their errors have a known variance.
    #[must_use]
    pub fn of_amounts(old: &Estimate, new: &Estimate, whole: f64, confidence: Confidence) -> Self {
        let change = (new.value - old.value) / whole;
        let half = confidence.normal() * (old.variance + new.variance).sqrt() / whole;
        Self { change, low: change - half, high: change + half }
    }

    /// Returns the change from `old` to `new` in relation to `old`. From zero, every change is infinite.
    #[must_use]
    pub fn relative(old: &Estimate, new: &Estimate, confidence: Confidence) -> Self {
        if old.value <= 0.0 || new.value <= 0.0 {
            return Self::with_zero(old, new, confidence);
        }
        let (before, after) = (old.relative_variance(), new.relative_variance());
        let variance = before + after;
        // Welch and Satterthwaite; a variance that is known or zero has no part in it.
        let part = |variance: f64, freedom: f64| if variance > 0.0 { variance * variance / freedom } else { 0.0 };
        let freedom = variance * variance / (part(before, old.freedom) + part(after, new.freedom));
        let quantile = if freedom.is_nan() { 0.0 } else { confidence.student(freedom) };
        let (ratio, factor) = (new.value / old.value, (quantile * variance.sqrt()).exp());
        Self { change: ratio - 1.0, low: ratio / factor - 1.0, high: ratio * factor - 1.0 }
    }

    /// Returns the relative change if one number is zero. The logarithm of the ratio has no variance then, so the
    /// bounds only say whether the other number differs from zero.
    fn with_zero(old: &Estimate, new: &Estimate, confidence: Confidence) -> Self {
        let is_positive = |one: &Estimate| one.value > confidence.student(one.freedom) * one.variance.sqrt();
        match (old.value > 0.0, new.value > 0.0) {
            (false, true) if is_positive(new) => {
                Self { change: f64::INFINITY, low: f64::INFINITY, high: f64::INFINITY }
            }
            (false, true) => Self { change: f64::INFINITY, low: -1.0, high: f64::INFINITY },
            (true, _) if is_positive(old) => Self { change: -1.0, low: -1.0, high: -1.0 },
            (true, _) => Self { change: -1.0, low: -1.0, high: f64::INFINITY },
            (false, false) => Self { change: 0.0, low: 0.0, high: 0.0 },
        }
    }

    /// Returns whether the interval does not contain zero.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::SampleWeight;

    /// The published quantiles of the normal distribution and of Student's.
    #[test]
    fn quantiles_match_published_values() {
        for (tail, wanted) in [(0.025, 1.959_964), (0.005, 2.575_829), (0.0005, 3.290_527), (5e-7, 4.891_638)] {
            assert!((Confidence { tail }.normal() - wanted).abs() < 1e-5, "{tail}");
        }
        for (freedom, tail, wanted) in [
            (1.0, 0.025, 12.706_205),
            (2.0, 0.025, 4.302_653),
            (3.0, 0.025, 3.182_446),
            (4.9, 0.025, 2.776_445),
            (10.0, 0.0005, 4.586_894),
            (30.0, 0.025, 2.042_272),
            (1e9, 0.025, 1.959_964),
        ] {
            assert!((Confidence { tail }.student(freedom) - wanted).abs() < 1e-5, "{freedom} {tail}");
        }
    }

    #[test]
    fn confidence_of_all_is_that_of_each_divided_by_their_number() {
        assert_eq!(Confidence::of_all(0), Confidence::OF_EACH);
        assert_eq!(Confidence::of_all(1), Confidence::OF_EACH);
        assert!(Confidence::of_all(50).normal() > 3.29);
    }

    /// Newcombe's example (a): 56 of 70 and 48 of 80.
    #[test]
    fn difference_of_shares_matches_published_values() {
        let total = |samples| Total {
            weight: SampleWeight { samples, events: samples },
            squares: samples.into(),
            ..Total::default()
        };
        let change = Change::of_shares((48.0 / 80.0, &total(80)), (56.0 / 70.0, &total(70)), Confidence::OF_EACH);
        assert!((change.low - 0.0524).abs() < 5e-5 && (change.high - 0.3339).abs() < 5e-5, "{change:?}");
        assert!(change.is_significant());
    }

    /// If only one side has an error, the quantile is that of its own freedom: the published ones of Student's.
    #[test]
    fn each_side_has_its_own_degrees_of_freedom() {
        let exact = Estimate { value: 100.0, variance: 0.0, freedom: f64::INFINITY };
        for (freedom, quantile) in [(1.0, 12.706_205), (4.0, 2.776_445), (30.0, 2.042_272)] {
            let measured = Estimate { value: 200.0, variance: 4.0, freedom };
            let factor = (quantile * 0.01_f64).exp();
            for (old, new, ratio) in [(exact, measured, 2.0), (measured, exact, 0.5)] {
                let found = Change::relative(&old, &new, Confidence::OF_EACH);
                let (low, high) = (ratio / factor - 1.0, ratio * factor - 1.0);
                assert!((found.low - low).abs() < 1e-6 && (found.high - high).abs() < 1e-6, "{freedom}: {found:?}");
            }
        }
        // Welch and Satterthwaite for two sides with equal relative variances: 2 * 4 * 8 / (4 + 8) * 2 / 2 = 10.67.
        let of = |freedom| Estimate { value: 100.0, variance: 4.0, freedom };
        let found = Change::relative(&of(4.0), &of(8.0), Confidence::OF_EACH);
        let wanted =
            (Confidence::OF_EACH.student(4.0 / (1.0 / 4.0 + 1.0 / 8.0)) * (2.0 * 0.0004_f64).sqrt()).exp() - 1.0;
        assert!((found.high - wanted).abs() < 1e-9, "{found:?}");
    }

    /// 400 and 500 samples of 10 events each: the difference has the variance of 900 samples.
    #[test]
    fn a_difference_of_amounts_has_the_error_of_their_samples() {
        let total = |samples: u64| Total {
            weight: SampleWeight { samples, events: samples * 10 },
            squares: u128::from(samples) * 100,
            ..Total::default()
        };
        let [old, new] = [(400, total(1_000)), (500, total(2_000))].map(|(part, of)| Estimate::of_part(part * 10, &of));
        let found = Change::of_amounts(&old, &new, 10_000.0, Confidence::OF_EACH);
        let half = 1.959_964 * 900.0_f64.sqrt() * 10.0 / 10_000.0;
        let is_near = |one: f64, other: f64| (one - other).abs() < 1e-6;
        assert!(is_near(found.change, 0.1) && is_near(found.low, 0.1 - half), "{found:?}");
        assert!(is_near(found.high, 0.1 + half), "{found:?}");
        // Twice the work: half the events for each, with half the deviation.
        let each = new.per(2.0);
        assert!(is_near(each.value, 2_500.0) && is_near(each.variance.sqrt(), new.variance.sqrt() / 2.0));
    }

    #[test]
    fn a_change_from_or_to_zero_is_significant_if_the_other_number_is_not_zero() {
        let of = |value, variance| Estimate { value, variance, freedom: 4.0 };
        let change = |old, new| Change::relative(&old, &new, Confidence::OF_EACH);
        assert_eq!(change(of(4.0, 0.0), of(5.0, 0.0)), Change { change: 0.25, low: 0.25, high: 0.25 });
        let (infinite, zero) = (f64::INFINITY, of(0.0, 0.0));
        for (old, new, wanted, is_significant) in [
            (zero, of(5.0, 1.0), infinite, true),
            (zero, of(5.0, 9.0), infinite, false),
            (of(5.0, 1.0), zero, -1.0, true),
            (of(5.0, 9.0), zero, -1.0, false),
            (zero, zero, 0.0, false),
        ] {
            let found = change(old, new);
            assert_eq!(
                (found.change.to_bits(), found.is_significant()),
                (wanted.to_bits(), is_significant),
                "{found:?}"
            );
            assert!(found.low <= found.change && found.change <= found.high, "{found:?}");
        }
    }
}
