//! Conversions between the numbers of records and real ones.

/// Returns a number of 128 bits of a record.
pub(super) fn whole([low, high]: [u64; 2]) -> u128 {
    u128::from(high) << 64 | u128::from(low)
}

/// Returns a number as a real one. Above 2^53 it has 53 significant bits.
#[expect(clippy::cast_precision_loss, reason = "counts and times are ratios here, to 15 digits")]
pub(super) fn real(number: u128) -> f64 {
    number as f64
}

/// Returns the nearest whole number; of one that is too large, the largest.
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates, and counts are positive"
)]
pub fn nearest(number: f64) -> u64 {
    number.round() as u64
}
