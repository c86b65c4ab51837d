//! The times and numbers of samples as differences to the last ones of their processors.

use rustc_hash::FxHashMap;

use crate::column::{unzigzag, unzigzag_u32};
use crate::error::BlockError;
use crate::frame::{MAX_PROCESSORS, SamplesHead};

/// A value for each processor.
pub struct PerProcessor<T> {
    first: T,
    /// Values by number, for the numbers that processors have. They are found without a hash.
    usual: Vec<T>,
    others: FxHashMap<u32, T>,
}

impl<T: Copy> PerProcessor<T> {
    pub fn new(first: T) -> Self {
        Self { first, usual: vec![first; MAX_PROCESSORS], others: FxHashMap::default() }
    }

    /// Returns the value of a processor.
    #[inline]
    pub fn of(&mut self, processor: u32) -> &mut T {
        let Self { first, usual, others } = self;
        match usual.get_mut(processor as usize) {
            Some(value) => value,
            None => others.entry(processor).or_insert(*first),
        }
    }
}

/// Decodes the times and numbers of samples, which are differences to the last ones of their processors.
pub struct Differences {
    previous: PerProcessor<(u64, u32)>,
    earliest: u64,
    latest: u64,
}

impl Differences {
    pub fn new(earliest: u64) -> Self {
        Self { previous: PerProcessor::new((earliest, 0)), earliest: u64::MAX, latest: 0 }
    }

    /// Makes times and numbers of the differences of the next samples.
    #[inline]
    pub fn decode(&mut self, processors: &[u32], times: &mut [u64], numbers: &mut [u32]) {
        let (mut earliest, mut latest) = (self.earliest, self.latest);
        for (processor, (time, number)) in processors.iter().zip(times.iter_mut().zip(numbers)) {
            let previous = self.previous.of(*processor);
            *time = previous.0.wrapping_add(unzigzag(*time));
            *number = previous.1.wrapping_add(unzigzag_u32(*number));
            *previous = (*time, *number);
            earliest = earliest.min(*time);
            latest = latest.max(*time);
        }
        (self.earliest, self.latest) = (earliest, latest);
    }

    /// Follows the next samples, whose numbers are the last ones of their processors. Returns whether all of these are
    /// `usual`.
    #[inline]
    pub fn follow(&mut self, processors: &[u32], times: &[u64], usual: u32) -> bool {
        let (mut earliest, mut latest, mut different) = (self.earliest, self.latest, 0);
        for (processor, time) in processors.iter().zip(times) {
            let previous = self.previous.of(*processor);
            previous.0 = previous.0.wrapping_add(unzigzag(*time));
            different |= previous.1 ^ usual;
            earliest = earliest.min(previous.0);
            latest = latest.max(previous.0);
        }
        (self.earliest, self.latest) = (earliest, latest);
        different == 0
    }

    /// Returns the last number of a processor.
    pub fn last_number(&mut self, processor: u32) -> u32 {
        self.previous.of(processor).1
    }

    /// Checks that the block has announced the earliest and the latest time.
    pub fn check(&self, head: &SamplesHead) -> Result<(), BlockError> {
        let is_right = (self.earliest, self.latest) == (head.earliest, head.latest);
        is_right.then_some(()).ok_or(BlockError::Columns)
    }
}
