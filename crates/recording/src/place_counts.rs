//! The samples of a block, counted by place.

use std::cmp;

use protocol::SampleRecord;
use rustc_hash::FxHashMap;

use crate::differences::Differences;
use crate::divided_columns::DividedColumns;
use crate::error::BlockError;
use crate::sample_place::SamplePlace;
use crate::stack::StackId;

/// Number of samples that are decoded at a time: they stay in the first-level cache.
const CHUNK: usize = 512;

/// The samples of a block by place: without the processor and the time of each, and without the last field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceCounts {
    /// What several places have in common: records in which the fields that the places do not share are zero.
    pub groups: Vec<SampleRecord>,
    /// The distinct places of samples, in the order of [`SampleColumns::places`](crate::SampleColumns::places).
    pub places: Vec<CountedPlace>,
    /// The earliest time.
    pub earliest: u64,
    /// The latest time.
    pub latest: u64,
}

/// A place and its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedPlace {
    /// The address.
    pub address: u64,
    /// Index of the other fields in [`PlaceCounts::groups`].
    pub group: u32,
    /// The call stack.
    pub stack: StackId,
    /// Number of samples.
    pub samples: u32,
    /// Sum of their intervals, or of other numbers by the kind of the record.
    pub numbers: u64,
    /// Sum of the squares of these numbers.
    pub squares: u128,
}

impl PlaceCounts {
    /// Counts the samples of a block.
    pub(crate) fn decode(block: &DividedColumns<'_>) -> Result<Self, BlockError> {
        let stacks = block.place_stacks()?;
        let sums = NumberSums::decode(block)?;
        let mut groups = Groups::default();
        let each = block.place_groups().zip(block.place_addresses()).zip(stacks).zip(sums.each());
        let places = each.map(|(((common, address), stack), NumberSum { samples, numbers, squares })| CountedPlace {
            address,
            group: groups.index(common),
            stack,
            samples,
            numbers,
            squares,
        });
        let places = places.collect();
        let groups = groups.list.into_iter().map(SamplePlace::record).collect();
        Ok(Self { groups, places, earliest: block.head.earliest, latest: block.head.latest })
    }
}

/// What places have in common, each once.
#[derive(Default)]
struct Groups {
    list: Vec<SamplePlace>,
    indexes: FxHashMap<SamplePlace, u32>,
    /// The last one. Successive places often have the same.
    last: Option<(SamplePlace, u32)>,
}

impl Groups {
    fn index(&mut self, group: SamplePlace) -> u32 {
        if let Some((_, index)) = self.last.filter(|(last, _)| *last == group) {
            return index;
        }
        let Self { list, indexes, last } = self;
        let index = *indexes.entry(group).or_insert_with(|| {
            list.push(group);
            u32::try_from(list.len() - 1).unwrap_or(u32::MAX)
        });
        *last = Some((group, index));
        index
    }
}

/// The samples of a place, and the sums of their numbers.
#[derive(Debug, Clone, Copy, Default)]
struct NumberSum {
    samples: u32,
    numbers: u64,
    squares: u128,
}

/// The sums of all places.
struct NumberSums {
    /// The number that most samples have: the interval of an event that is sampled by a fixed one.
    usual: u32,
    /// Samples with this number by place.
    usual_samples: Vec<u32>,
    /// The other samples by place; empty if there are none.
    others: Vec<NumberSum>,
}

impl NumberSums {
    fn decode(block: &DividedColumns<'_>) -> Result<Self, BlockError> {
        let [count, places] = [block.head.samples, block.head.places].map(|number| number as usize);
        let mut differences = Differences::new(block.head.earliest);
        let (mut processors, mut place) = ([0; CHUNK], [0; CHUNK]);
        let (mut times, mut numbers) = ([0; CHUNK], [0; CHUNK]);
        let mut sums = Self { usual: 0, usual_samples: vec![0; places], others: Vec::new() };
        for begin in (0..count).step_by(CHUNK) {
            let length = cmp::min(CHUNK, count - begin);
            let (Some(processors), Some(place), Some(times), Some(numbers)) = (
                processors.get_mut(..length),
                place.get_mut(..length),
                times.get_mut(..length),
                numbers.get_mut(..length),
            ) else {
                return Err(BlockError::Columns);
            };
            block.processor.read(begin, processors);
            block.place.read(begin, place);
            block.time.read(begin, times);
            if block.number.is_zero_at(begin, length) {
                if differences.follow(processors, times, sums.usual) {
                    sums.add_usual(place)?;
                    continue;
                }
                for (number, processor) in numbers.iter_mut().zip(processors) {
                    *number = differences.last_number(*processor);
                }
            } else {
                block.number.read(begin, numbers);
                differences.decode(processors, times, numbers);
            }
            if begin == 0 {
                sums.usual = numbers.first().copied().unwrap_or_default();
            }
            sums.add(place, numbers)?;
        }
        differences.check(block.head)?;
        Ok(sums)
    }

    /// Adds samples with these places and the usual number.
    ///
    /// # Errors
    /// If there is no such place.
    #[inline]
    fn add_usual(&mut self, places: &[u32]) -> Result<(), BlockError> {
        for place in places {
            *self.usual_samples.get_mut(*place as usize).ok_or(BlockError::Columns)? += 1;
        }
        Ok(())
    }

    /// Adds samples with these places and numbers.
    ///
    /// # Errors
    /// If there is no such place.
    #[inline]
    fn add(&mut self, places: &[u32], numbers: &[u32]) -> Result<(), BlockError> {
        if numbers.iter().all(|number| *number == self.usual) {
            return self.add_usual(places);
        }
        let Self { usual_samples, others, .. } = self;
        others.resize(usual_samples.len(), NumberSum::default());
        for (place, number) in places.iter().zip(numbers) {
            let sum = others.get_mut(*place as usize).ok_or(BlockError::Columns)?;
            sum.samples += 1;
            sum.numbers += u64::from(*number);
            sum.squares += u128::from(u64::from(*number).pow(2));
        }
        Ok(())
    }

    /// Returns the sums of each place.
    fn each(&self) -> impl Iterator<Item = NumberSum> {
        let Self { usual, usual_samples, others } = self;
        let usual = u64::from(*usual);
        usual_samples.iter().enumerate().map(move |(place, samples)| {
            let other = others.get(place).copied().unwrap_or_default();
            let of_usual = u64::from(*samples);
            NumberSum {
                samples: samples + other.samples,
                numbers: of_usual * usual + other.numbers,
                squares: u128::from(of_usual) * u128::from(usual.pow(2)) + other.squares,
            }
        })
    }
}
