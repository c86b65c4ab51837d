//! Operations of a set of processors.

use crate::layout::{PROCESSOR_WORDS, ProcessorSet};

impl ProcessorSet {
    /// No processor; in a request, every active one.
    pub const EMPTY: Self = Self { words: [0; PROCESSOR_WORDS] };

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Returns whether the set contains processor `number`.
    #[must_use]
    pub fn contains(&self, number: u32) -> bool {
        self.words.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    /// Adds processor `number`; returns false if it is beyond 2,047.
    pub fn insert(&mut self, number: u32) -> bool {
        match self.words.get_mut(number as usize / 64) {
            Some(word) => {
                *word |= 1 << (number % 64);
                true
            }
            None => false,
        }
    }

    /// Iterates over the processors of the set in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        core::iter::successors(self.next_from(0), |before| self.next_from(before + 1))
    }

    /// Returns the first processor of the set that is not below `number`.
    fn next_from(&self, number: u32) -> Option<u32> {
        let mut below = u64::MAX.checked_shl(number % 64).unwrap_or_default(); // of the first word alone
        (number & !63..).step_by(64).zip(self.words.get(number as usize / 64..)?).find_map(|(first, word)| {
            let word = word & core::mem::replace(&mut below, u64::MAX);
            (word != 0).then(|| first + word.trailing_zeros())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_in_the_set_exactly_when_it_was_put_in() {
        let mut set = ProcessorSet::EMPTY;
        let members = [0, 1, 63, 64, 127, 2047];
        for number in members {
            assert!(set.insert(number));
        }
        assert!(!set.insert(2048));
        assert!(set.iter().eq(members));
        assert!(!set.contains(2048));
        assert!(!set.is_empty() && ProcessorSet::EMPTY.is_empty());
    }
}
