//! One column of numbers: the bytes of equal weight together, and differences as small numbers.

use std::ops::{BitOrAssign, Shl};

use crate::error::BlockError;

/// A number without a sign.
pub trait Number: Copy + From<u8> + BitOrAssign + Shl<u32, Output = Self> {}

impl<T: Copy + From<u8> + BitOrAssign + Shl<u32, Output = Self>> Number for T {}

/// Makes small numbers of small differences, whatever their sign.
pub const fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (difference.cast_signed() >> 63).cast_unsigned()
}

/// Returns the difference of which [`zigzag`] made `number`.
pub const fn unzigzag(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// Returns the difference of which [`zigzag`] made `number`, if it needs no more than 32 bits.
pub const fn unzigzag_u32(number: u32) -> u32 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// Appends a column. `scratch` is memory for its values.
pub fn put(columns: &mut Vec<u8>, values: impl Iterator<Item = u64>, scratch: &mut Vec<u64>) {
    scratch.clear();
    scratch.extend(values);
    put_values(columns, scratch);
}

/// Appends a column: the number of bytes that its largest value needs, then the lowest bytes of all values, the next
/// ones, and so on. Bytes of the same weight resemble each other, and those that are zero cost nothing.
pub fn put_values(columns: &mut Vec<u8>, values: &[u64]) {
    let used = values.iter().fold(0, |used, value| used | value);
    let width = (u64::BITS - used.leading_zeros()).div_ceil(u8::BITS);
    columns.push(u8::try_from(width).unwrap_or(u8::MAX));
    for byte in 0..width {
        let plane = values.iter().map(|value| value.to_le_bytes().get(byte as usize).copied().unwrap_or_default());
        columns.extend(plane);
    }
}

/// Takes columns from the front of decompressed bytes.
pub struct Columns<'a>(pub &'a [u8]);

impl Columns<'_> {
    /// Takes a column of `count` values, none of which has more bytes than `T`.
    pub fn take<T: Number>(&mut self, count: usize) -> Result<Vec<T>, BlockError> {
        let (width, rest) = self.0.split_first().ok_or(BlockError::Columns)?;
        let width = usize::from(*width);
        if width > size_of::<T>() {
            return Err(BlockError::Columns);
        }
        let (planes, rest) = rest.split_at_checked(width * count).ok_or(BlockError::Columns)?;
        self.0 = rest;
        // `max` because an empty column has no planes, which `chunks_exact` does not accept.
        let mut planes = planes.chunks_exact(count.max(1));
        let Some(lowest) = planes.next() else { return Ok(vec![T::from(0); count]) };
        let mut values: Vec<T> = lowest.iter().map(|part| T::from(*part)).collect();
        for (byte, plane) in (1..).zip(planes) {
            for (value, part) in values.iter_mut().zip(plane) {
                *value |= T::from(*part) << (byte * u8::BITS);
            }
        }
        Ok(values)
    }
}
