//! Confidence interval of a share of samples, as an estimate of a share of time or of events.

/// The 97.5th percentile of the normal distribution, for a two-sided 95 % interval.
const Z: f64 = 1.959_963_985;

/// An interval of shares, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Interval {
    /// Returns Wilson's 95 % interval for a `share` of `samples` independent samples (E. B. Wilson, 1927). Unlike the
    /// normal approximation, it is valid for few samples and for shares near 0 and 1. Samples in lockstep with a loop
    /// of the program are not independent; a prime sampling interval helps against this.
    #[must_use]
    pub fn wilson(share: f64, samples: f64) -> Self {
        Self::wilson_within(share, samples, Z)
    }

    /// Returns Wilson's interval of `z` standard deviations on each side.
    pub(crate) fn wilson_within(share: f64, samples: f64, z: f64) -> Self {
        if samples <= 0.0 {
            return Self { low: 0.0, high: 1.0 };
        }
        let square = z * z;
        let scale = 1.0 + square / samples;
        let middle = (share + square / (2.0 * samples)) / scale;
        let half = z / scale * (share * (1.0 - share) / samples + square / (4.0 * samples * samples)).sqrt();
        Self { low: (middle - half).clamp(0.0, share), high: (middle + half).clamp(share, 1.0) }
    }
}

/// Converts a count to a real number. The rounding is smaller than the precision of any share, rate or time shown.
#[expect(clippy::cast_precision_loss, reason = "a share has far fewer digits")]
pub fn real(count: impl Into<u128>) -> f64 {
    count.into() as f64
}

/// Returns the effective number of samples with different weights, from the sum of the weights and the sum of their
/// squares (L. Kish, 1965).
pub(crate) fn effective_samples(sum: f64, squares: f64) -> f64 {
    if squares > 0.0 { sum * sum / squares } else { 0.0 }
}

/// Returns the standard error of the share that a part has of a sum over independent samples, from the squares of the
/// part and of all (the linearized variance of a ratio; W. G. Cochran, "Sampling Techniques", 1977, section 6.3).
pub(crate) fn ratio_error(share: f64, part_squares: f64, all_squares: f64, sum: f64) -> f64 {
    let (inside, outside) =
        ((1.0 - share).powi(2) * part_squares, share.powi(2) * (all_squares - part_squares).max(0.0));
    if sum > 0.0 { (inside + outside).sqrt() / sum } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn wilson_interval_matches_published_values() {
        for (hits, samples, low, high) in [
            (10.0, 100.0, 0.0552, 0.1744),
            (0.0, 10.0, 0.0, 0.2775),
            (10.0, 10.0, 0.7225, 1.0),
            (81.0, 263.0, 0.2553, 0.3662),
        ] {
            let interval = Interval::wilson(hits / samples, samples);
            assert!((interval.low - low).abs() < 5e-5 && (interval.high - high).abs() < 5e-5, "{interval:?}");
        }
    }

    #[test]
    fn no_samples_give_the_full_interval() {
        assert_eq!(Interval::wilson(0.0, 0.0), Interval { low: 0.0, high: 1.0 });
        assert_eq!(effective_samples(0.0, 0.0).to_bits(), 0.0_f64.to_bits());
    }

    /// With equal weights it is the standard error of a binomial share.
    #[test]
    fn equal_samples_have_the_error_of_a_binomial_share() {
        for (part, all) in [(1.0, 2.0), (10.0, 100.0), (999.0, 1000.0_f64)] {
            let share: f64 = part / all;
            let wanted = (share * (1.0 - share) / all).sqrt();
            let found = ratio_error(share, part * 49.0, all * 49.0, all * 7.0);
            assert!((found / wanted - 1.0).abs() < 1e-9, "{found} {wanted}");
        }
        assert_eq!(ratio_error(0.0, 0.0, 0.0, 0.0).to_bits(), 0.0_f64.to_bits());
    }

    /// The probability that the interval of a random sample contains the true share is about 95 %.
    #[test]
    fn interval_covers_the_share_with_its_nominal_probability() {
        for (share, samples) in [(0.02, 200_u32), (0.1, 100), (0.3, 50), (0.5, 400)] {
            let mut probability = (1.0_f64 - share).powi(samples.try_into().unwrap());
            let mut covered = 0.0;
            for hits in 0..=samples {
                let n = f64::from(samples);
                let interval = Interval::wilson(f64::from(hits) / n, n);
                if (interval.low..=interval.high).contains(&share) {
                    covered += probability;
                }
                probability *= (n - f64::from(hits)) / (f64::from(hits) + 1.0) * share / (1.0 - share);
            }
            assert!((0.92..=0.98).contains(&covered), "{share} of {samples}: {covered}");
        }
    }

    proptest! {
        #[test]
        fn interval_contains_the_share_and_narrows_with_more_samples(share in 0.0_f64..=1.0, samples in 1.0_f64..1e9) {
            let interval = Interval::wilson(share, samples);
            prop_assert!(0.0 <= interval.low && interval.low <= share && share <= interval.high && interval.high <= 1.0);
            let narrower = Interval::wilson(share, samples * 2.0);
            prop_assert!(narrower.high - narrower.low < interval.high - interval.low);
        }

        #[test]
        fn uneven_weights_reduce_the_effective_number_of_samples(weight in 1_u32..u32::MAX, samples in 2_u32..1_000_000) {
            let (weight, samples) = (f64::from(weight), f64::from(samples));
            let even = effective_samples(weight * samples, weight * weight * samples);
            prop_assert!((even / samples - 1.0).abs() < 1e-9);
            let uneven = effective_samples(weight * samples + weight, weight * weight * (samples - 1.0) + 4.0 * weight * weight);
            prop_assert!(uneven < samples);
        }
    }
}
