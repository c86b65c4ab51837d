//! Numbers for values of which there are few, such as groups of locations, so that maps with many keys stay small.

use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// Values, each once. Its number is its place.
#[derive(Debug, Clone)]
pub(crate) struct Numbering<T> {
    values: Vec<T>,
    numbers: FxHashMap<T, u32>,
}

impl<T> Default for Numbering<T> {
    fn default() -> Self {
        Self { values: Vec::new(), numbers: FxHashMap::default() }
    }
}

impl<T: Copy + Hash + Eq> Numbering<T> {
    /// Returns the number of a value.
    pub fn number_of(&mut self, value: T) -> u32 {
        *self.numbers.entry(value).or_insert_with(|| {
            self.values.push(value);
            // More values than this do not fit into memory.
            u32::try_from(self.values.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Returns all values in the order of their numbers.
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Returns the number of a value, if it has one.
    pub fn existing(&self, value: &T) -> Option<u32> {
        self.numbers.get(value).copied()
    }

    /// Returns the value with this number.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }
}

/// A [`Numbering`] in one of several threads.
#[derive(Debug)]
pub(crate) struct ThreadNumbering<'a, 'b, T> {
    shared: &'a Mutex<&'b mut Numbering<T>>,
    /// Numbers that this thread has looked up.
    known: FxHashMap<T, u32>,
    /// The last value. Successive values are mostly equal.
    last: Option<(T, u32)>,
}

impl<'a, 'b, T: Copy + Hash + Eq> ThreadNumbering<'a, 'b, T> {
    pub fn new(shared: &'a Mutex<&'b mut Numbering<T>>) -> Self {
        Self { shared, known: FxHashMap::default(), last: None }
    }

    /// Returns the number of a value.
    #[inline]
    pub fn number_of(&mut self, value: T) -> u32 {
        if let Some((last, number)) = self.last
            && last == value
        {
            return number;
        }
        let Self { shared, known, .. } = self;
        let number = *known
            .entry(value)
            .or_insert_with(|| shared.lock().unwrap_or_else(PoisonError::into_inner).number_of(value));
        self.last = Some((value, number));
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_number_in_all_threads() {
        let mut numbering = Numbering::default();
        let shared = Mutex::new(&mut numbering);
        let numbers = |values: [u64; 5]| {
            let mut thread = ThreadNumbering::new(&shared);
            values.map(|value| thread.number_of(value))
        };
        assert_eq!(numbers([7, 7, 9, 7, 8]), [0, 0, 1, 0, 2]);
        assert_eq!(numbers([8, 9, 6, 7, 6]), [2, 1, 3, 0, 3]);
        assert_eq!([0, 3, 4].map(|number| numbering.get(number).copied()), [Some(7), Some(6), None]);
    }
}
