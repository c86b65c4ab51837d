//! Slices of a recording: processors, threads and time, which every record has in itself.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use protocol::AnySample;
use recording::{EncodedBlock, ReadError, Reader};

use crate::input::Input;

/// Nanoseconds per second.
const NANOSECONDS: u128 = 1_000_000_000;

/// A part of a recording; the default is all of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slice {
    /// Selects only records of these processors.
    pub processors: Option<BTreeSet<u32>>,
    /// Selects only samples in these threads, and all other records.
    pub threads: Option<BTreeSet<u32>>,
    /// Selects only records of this time, in units of the recording's clock. [`RecordedTime::at`] converts to it.
    pub time: Option<Range<u64>>,
}

impl Slice {
    /// Returns whether the slice is the whole recording.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a record of `processor` at `time` is selected.
    #[must_use]
    pub fn selects(&self, processor: u32, time: u64) -> bool {
        self.selects_time(time) && self.selects_processor(processor)
    }

    /// Returns whether records of `time` are selected.
    #[must_use]
    pub fn selects_time(&self, time: u64) -> bool {
        self.time.as_ref().is_none_or(|wanted| wanted.contains(&time))
    }

    /// Returns how much of a `duration` that ended at `end` is in the selected time, in units of the recording's clock.
    pub(crate) fn selected_units(&self, end: u64, duration: u64) -> u64 {
        let Some(wanted) = &self.time else { return duration };
        wanted.end.min(end).saturating_sub(wanted.start.max(end.saturating_sub(duration)))
    }

    /// Returns whether records of `processor` are selected.
    #[must_use]
    pub fn selects_processor(&self, processor: u32) -> bool {
        self.processors.as_ref().is_none_or(|wanted| wanted.contains(&processor))
    }

    /// Returns whether `sample` is selected.
    #[must_use]
    pub fn selects_sample(&self, sample: &AnySample) -> bool {
        self.selects(sample.processor, sample.time)
            && self.threads.as_ref().is_none_or(|wanted| wanted.contains(&sample.thread))
    }
}

/// The time that the records of a recording cover, in units of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedTime {
    /// Time of the earliest record.
    pub first: u64,
    /// Time of the latest record.
    pub last: u64,
    clock: u64,
}

impl RecordedTime {
    /// Reads the times of all records up to the first damaged block; `None` if there are no records.
    ///
    /// # Errors
    /// If the file header or the first block cannot be read.
    pub fn read(input: &mut dyn Input) -> Result<Option<Self>, ReadError> {
        let mut blocks = Reader::new(input)?;
        let Some(EncodedBlock::Session(session)) = blocks.next_encoded().transpose()? else { return Ok(None) };
        let mut recorded: Option<RangeInclusive<u64>> = None;
        while let Some(Ok(block)) = blocks.next_encoded() {
            let EncodedBlock::Samples(samples) = block else { continue };
            let Ok(times) = samples.times() else { break };
            let both = recorded.into_iter().chain(times);
            recorded = both.reduce(|all, more| *all.start().min(more.start())..=*all.end().max(more.end()));
        }
        Ok(recorded.map(|times| Self { first: *times.start(), last: *times.end(), clock: session.clock.max(1) }))
    }

    /// Returns the first unit of the clock that is at least `since_start` after the earliest record.
    #[must_use]
    pub fn at(&self, since_start: Duration) -> u64 {
        let units = since_start.as_nanos().saturating_mul(self.clock.into()).div_ceil(NANOSECONDS);
        self.first.saturating_add(units.try_into().unwrap_or(u64::MAX))
    }

    /// Returns the part of the time that `slice` selects.
    #[must_use]
    pub fn within(self, slice: &Slice) -> Self {
        let Some(wanted) = &slice.time else { return self };
        let first = self.first.max(wanted.start).min(self.last);
        Self { first, last: self.last.min(wanted.end.saturating_sub(1)).max(first), ..self }
    }

    /// Returns the time from the earliest to the latest record.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let nanoseconds = u128::from(self.last - self.first) * NANOSECONDS / u128::from(self.clock);
        Duration::from_nanos(nanoseconds.try_into().unwrap_or(u64::MAX))
    }
}
