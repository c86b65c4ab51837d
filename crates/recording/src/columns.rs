//! Samples as columns: what most samples share is written once, and the rest as small differences.

use std::{fmt, io};

use protocol::{RecordKind, SampleRecord};
use rustc_hash::FxHashMap;
use zerocopy::{FromBytes, FromZeros, IntoBytes};
use zstd::bulk::Compressor;

use crate::column::{put, put_values, unzigzag, zigzag};
use crate::differences::{Differences, PerProcessor};
use crate::divided_columns::DividedColumns;
use crate::error::BlockError;
use crate::frame::SamplesHead;
use crate::sample_place::{Row, SamplePlace, is_branch};
use crate::stack::StackId;

/// Level of compression: the fastest of the usual ones. Higher levels gain little, because columns repeat bytes.
const LEVEL: i32 = 1;

/// Returns the last field of a record. A sample has a cookie in the upper half, by which its stack was found.
const fn without_cookie(row: &Row) -> u64 {
    if row.kind == RecordKind::Sample as u16 { row.last & u32::MAX as u64 } else { row.last }
}

/// The last values of a processor, from which the next differ little.
#[derive(Debug, Clone, Copy)]
struct Previous {
    time: u64,
    number: u32,
    last: u64,
}

impl Previous {
    const fn new(earliest: u64) -> Self {
        Self { time: earliest, number: 0, last: 0 }
    }
}

/// Encodes samples. Its memory is reused.
pub struct Encoder {
    compressor: Compressor<'static>,
    places: Vec<SamplePlace>,
    indexes: FxHashMap<SamplePlace, u32>,
    previous: FxHashMap<u32, Previous>,
    values: [Vec<u64>; 4],
    columns: Vec<u8>,
    frame: Vec<u8>,
}

impl Encoder {
    /// Creates an encoder.
    ///
    /// # Errors
    /// If memory is short.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            compressor: Compressor::new(LEVEL)?,
            places: Vec::new(),
            indexes: FxHashMap::default(),
            previous: FxHashMap::default(),
            values: Default::default(),
            columns: Vec::new(),
            frame: Vec::new(),
        })
    }

    /// Returns the two parts of the payload of a block with these samples: at least one, at most
    /// [`MAX_SAMPLES`](crate::MAX_SAMPLES). Each has the number of its call stack in `stacks`.
    pub fn encode(
        &mut self,
        samples: &[SampleRecord],
        stacks: impl Iterator<Item = u32>,
    ) -> io::Result<(SamplesHead, &[u8])> {
        let rows = <[Row]>::ref_from_bytes(samples.as_bytes()).unwrap_or_default();
        let earliest = rows.iter().map(|row| row.time).min().unwrap_or_default();
        let latest = rows.iter().map(|row| row.time).max().unwrap_or_default();
        self.columns.clear();
        self.split(rows, stacks, earliest);
        self.put_places();
        put(&mut self.columns, rows.iter().map(|row| row.processor.into()), &mut Vec::new());
        for values in &self.values {
            put_values(&mut self.columns, values);
        }
        compress(&mut self.compressor, &self.columns, &mut self.frame)?;
        let length = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
        let lengths = [rows.len(), self.places.len(), self.columns.len()].map(length);
        Ok((SamplesHead::new(lengths, [earliest, latest]), &self.frame))
    }

    /// Returns the compressed columns of a block of stacks.
    pub fn compress(&mut self, columns: &[u8]) -> io::Result<&[u8]> {
        compress(&mut self.compressor, columns, &mut self.frame)?;
        Ok(&self.frame)
    }

    /// Divides the rows into places and into what differs between the samples of a place.
    fn split(&mut self, rows: &[Row], stacks: impl Iterator<Item = u32>, earliest: u64) {
        let Self { places, indexes, previous, values: [of_place, times, numbers, lasts], .. } = self;
        places.clear();
        indexes.clear();
        previous.clear();
        for values in [&mut *of_place, &mut *times, &mut *numbers, &mut *lasts] {
            values.clear();
        }
        for (row, stack) in rows.iter().zip(stacks) {
            let place = SamplePlace::of(row, stack);
            let index = *indexes.entry(place).or_insert_with(|| {
                places.push(place);
                u32::try_from(places.len() - 1).unwrap_or(u32::MAX)
            });
            of_place.push(index.into());
            let previous = previous.entry(row.processor).or_insert(Previous::new(earliest));
            times.push(zigzag(row.time.wrapping_sub(previous.time)));
            numbers.push(zigzag(i64::from(row.number.wrapping_sub(previous.number).cast_signed()).cast_unsigned()));
            previous.time = row.time;
            previous.number = row.number;
            if is_branch(row.kind) {
                lasts.push(0);
            } else {
                let last = without_cookie(row);
                lasts.push(zigzag(last.wrapping_sub(previous.last)));
                previous.last = last;
            }
        }
    }

    fn put_places(&mut self) {
        let Self { places, columns, .. } = self;
        let scratch = &mut Vec::new();
        put(columns, places.iter().map(|place| place.kind.into()), scratch);
        put(columns, places.iter().map(|place| place.mode.into()), scratch);
        put(columns, places.iter().map(|place| place.source.into()), scratch);
        put(columns, places.iter().map(|place| place.ids[0].into()), scratch);
        put(columns, places.iter().map(|place| place.ids[1].into()), scratch);
        let mut previous = 0;
        let differences = places.iter().map(|place| {
            let difference = zigzag(place.address.wrapping_sub(previous));
            previous = place.address;
            difference
        });
        put(columns, differences, scratch);
        let of_target =
            |place: &SamplePlace| if is_branch(place.kind) { place.target.wrapping_sub(place.address) } else { 0 };
        put(columns, places.iter().map(|place| zigzag(of_target(place))), scratch);
        let mut previous = 0;
        let differences = places.iter().map(|place| {
            let difference = zigzag(u64::from(place.stack).wrapping_sub(previous));
            previous = place.stack.into();
            difference
        });
        put(columns, differences, scratch);
    }
}

fn compress(compressor: &mut Compressor<'_>, columns: &[u8], frame: &mut Vec<u8>) -> io::Result<()> {
    frame.clear();
    frame.reserve(zstd::zstd_safe::compress_bound(columns.len()));
    compressor.compress_to_buffer(columns, frame)?;
    Ok(())
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").finish_non_exhaustive()
    }
}

/// The samples of a block by columns, of equal length except `places` and `stacks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampleColumns {
    /// The distinct places of samples: records with the fields that all samples of the place have. `time`, `processor`,
    /// the interval, and the last field except of a branch are zero.
    pub places: Vec<SampleRecord>,
    /// The call stack of each place.
    pub stacks: Vec<StackId>,
    /// Index of the place of each sample. It is below the number of places.
    pub place: Vec<u32>,
    /// Processor of each sample.
    pub processor: Vec<u32>,
    /// Time of each sample.
    pub time: Vec<u64>,
    /// Interval, or another number by the kind of the record.
    pub number: Vec<u32>,
    /// The last field of each record, which is zero for branches, whose place has it.
    pub last: Vec<u64>,
    /// The earliest time.
    pub earliest: u64,
    /// The latest time.
    pub latest: u64,
}

impl SampleColumns {
    /// Decodes the columns of a block.
    pub(crate) fn decode(block: &DividedColumns<'_>) -> Result<Self, BlockError> {
        let places = block.place_records();
        let stacks = block.place_stacks()?;
        let DividedColumns { head, processor, place, time, number, last, .. } = block;
        let (processor, place) = (processor.values(), place.values());
        let (mut time, mut number, mut last) = (time.values(), number.values(), last.values());
        if place.iter().fold(0, |most, place| most.max(*place)) >= head.places {
            return Err(BlockError::Columns);
        }
        let mut differences = Differences::new(head.earliest);
        differences.decode(&processor, &mut time, &mut number);
        differences.check(head)?;
        // Counters without PEBS leave the field zero.
        if !block.last.is_zero() {
            let is_branch = |place: &SampleRecord| place.kind().is_some_and(|kind| is_branch(kind as u16));
            let branches: Vec<bool> = places.iter().map(is_branch).collect();
            let mut previous = PerProcessor::new(0_u64);
            for ((processor, place), last) in processor.iter().zip(&place).zip(&mut last) {
                if !branches.get(*place as usize).copied().unwrap_or_default() {
                    let previous = previous.of(*processor);
                    *last = previous.wrapping_add(unzigzag(*last));
                    *previous = *last;
                }
            }
        }
        let (earliest, latest) = (head.earliest, head.latest);
        Ok(Self { places, stacks, place, processor, time, number, last, earliest, latest })
    }

    /// Returns whether a sample has a call stack, or a reason why not.
    #[must_use]
    pub fn have_stacks(&self) -> bool {
        self.stacks.iter().any(|stack| *stack != StackId::NOT_RECORDED)
    }

    /// Returns the call stack of each sample, in the order of the samples.
    pub fn sample_stacks(&self) -> impl Iterator<Item = StackId> {
        self.place.iter().map(|place| self.stacks.get(*place as usize).copied().unwrap_or_default())
    }

    /// Returns the samples in their order.
    pub fn records(&self) -> impl Iterator<Item = SampleRecord> {
        let Self { places, place, processor, time, number, last, .. } = self;
        let each = place.iter().zip(processor).zip(time).zip(number).zip(last);
        each.map(|((((place, processor), time), number), last)| {
            let common = places.get(*place as usize).copied().unwrap_or_else(SampleRecord::new_zeroed);
            let row: Row = zerocopy::transmute!(common);
            let last = if is_branch(row.kind) { row.last } else { *last };
            zerocopy::transmute!(Row { time: *time, processor: *processor, number: *number, last, ..row })
        })
    }
}
