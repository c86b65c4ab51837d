//! One column of numbers: the bytes of equal weight together, and differences as small numbers.

use std::marker::PhantomData;
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

impl<'a> Columns<'a> {
    /// Takes a column of `count` values, none of which has more bytes than `T`.
    pub fn column<T: Number>(&mut self, count: usize) -> Result<Column<'a, T>, BlockError> {
        let (width, rest) = self.0.split_first().ok_or(BlockError::Columns)?;
        let width = usize::from(*width);
        if width > size_of::<T>() {
            return Err(BlockError::Columns);
        }
        let (planes, rest) = rest.split_at_checked(width * count).ok_or(BlockError::Columns)?;
        self.0 = rest;
        Ok(Column { planes, count, number: PhantomData })
    }

    /// Takes a column as [`column`](Self::column) does, and returns its values.
    pub fn take<T: Number>(&mut self, count: usize) -> Result<Vec<T>, BlockError> {
        self.column(count).map(Column::values)
    }
}

/// A column whose values are not decoded.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a, T> {
    /// The lowest bytes of all values, the next ones, and so on.
    planes: &'a [u8],
    count: usize,
    number: PhantomData<T>,
}

impl<T: Number> Column<'_, T> {
    /// Returns whether every value is zero because the column has no bytes.
    pub const fn is_zero(self) -> bool {
        self.planes.is_empty()
    }

    /// Returns all values.
    pub fn values(self) -> Vec<T> {
        let mut values = vec![T::from(0); self.count];
        self.read(0, &mut values);
        values
    }

    /// Reads the values from the index `begin` on. Those behind the end are left as they are.
    pub fn read(self, begin: usize, values: &mut [T]) {
        let mut planes = self.planes_from(begin);
        let Some(lowest) = planes.next() else {
            values.fill(T::from(0));
            return;
        };
        for_each_pair(values, lowest, |value, part| *value = T::from(part));
        for (byte, plane) in (1..).zip(planes) {
            // Few values need their upper bytes.
            if !is_zero(plane, values.len()) {
                for_each_pair(values, plane, |value, part| *value |= T::from(part) << (byte * u8::BITS));
            }
        }
    }

    /// Returns whether `length` values from the index `begin` on are zero.
    #[inline]
    pub fn is_zero_at(self, begin: usize, length: usize) -> bool {
        self.planes_from(begin).all(|plane| is_zero(plane, length))
    }
}

impl<'a, T> Column<'a, T> {
    /// Returns the bytes from the index `begin` on, by their weight.
    fn planes_from(self, begin: usize) -> impl Iterator<Item = &'a [u8]> {
        // `max` because an empty column has no planes, which `chunks_exact` does not accept.
        let planes = self.planes.chunks_exact(self.count.max(1));
        planes.map(move |plane| plane.get(begin..).unwrap_or_default())
    }
}

/// Returns whether the first `length` bytes are zero.
#[inline]
fn is_zero(bytes: &[u8], length: usize) -> bool {
    let bytes = bytes.get(..length).unwrap_or(bytes);
    let (groups, rest) = bytes.as_chunks::<8>();
    let used = groups.iter().fold(0, |used, group| used | u64::from_ne_bytes(*group));
    used == 0 && rest.iter().all(|byte| *byte == 0)
}

/// Calls `each` for each value and its byte, eight at a time: the linked programs are optimized for size, without
/// instructions for several values.
#[inline]
fn for_each_pair<T>(values: &mut [T], bytes: &[u8], each: impl Fn(&mut T, u8)) {
    let length = values.len().min(bytes.len());
    let (values, bytes) = (values.get_mut(..length).unwrap_or_default(), bytes.get(..length).unwrap_or_default());
    let ((values, last_values), (bytes, last_bytes)) = (values.as_chunks_mut::<8>(), bytes.as_chunks::<8>());
    for (values, bytes) in values.iter_mut().zip(bytes) {
        values.iter_mut().zip(bytes).for_each(|(value, byte)| each(value, *byte));
    }
    last_values.iter_mut().zip(last_bytes).for_each(|(value, byte)| each(value, *byte));
}
