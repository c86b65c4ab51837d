//! Reading a recording: once for everything but the single samples, and again for those.

use std::borrow::Cow;
use std::io::{self, Read};

use protocol::Sample;
use recording::{Block, ReadError, Reader, Session, Summary};
use thiserror::Error;

use crate::processes::Processes;
use crate::tally::{Detail, Tally};

/// Nanoseconds in a second.
const NANOSECONDS: u128 = 1_000_000_000;

/// What a recording holds, but for the single samples.
#[derive(Debug)]
pub struct Contents {
    /// What was asked for, and where.
    pub session: Session,
    /// What was loaded where.
    pub processes: Processes,
    /// The samples by place.
    pub tally: Tally,
    /// How it ended; a recording that was cut off does not tell.
    pub summary: Option<Summary>,
    /// Why there is no more than this, where there should be.
    pub damage: Option<ReadError>,
}

impl Contents {
    /// Reads all whole blocks of a recording.
    ///
    /// # Errors
    /// When not even the first block can be read. Later damage is [told](Self::damage) beside what was read.
    pub fn read(input: impl Read, detail: Detail) -> Result<Self, ReadError> {
        let mut blocks = Reader::new(input)?;
        let Some(Block::Session(session)) = blocks.next().transpose()? else {
            return Err(ReadError::CutOff { offset: 0 });
        };
        let mut contents =
            Self { session, processes: Processes::default(), tally: Tally::new(detail), summary: None, damage: None };
        for block in blocks {
            match block {
                Ok(Block::Process(process)) => contents.processes.add(&process),
                Ok(Block::Samples(samples)) => contents.tally.add(&samples),
                Ok(Block::Summary(summary)) => contents.summary = Some(summary),
                // The reader lets no second session through.
                Ok(Block::Session(_)) => {}
                Err(error) => contents.damage = Some(error),
            }
        }
        Ok(contents)
    }

    /// Nanoseconds from the earliest record to `time`, which is in units of the recording's clock.
    #[must_use]
    pub fn nanoseconds(&self, time: u64) -> u64 {
        self.duration(time.saturating_sub(self.tally.earliest().unwrap_or(time)))
    }

    /// Nanoseconds in `units` of the recording's clock.
    #[must_use]
    pub fn duration(&self, units: u64) -> u64 {
        let nanoseconds = u128::from(units) * NANOSECONDS / u128::from(self.session.clock.max(1));
        nanoseconds.try_into().unwrap_or(u64::MAX)
    }

    /// The name of `source` in this recording, or its number.
    #[must_use]
    pub fn source_name(&self, source: u32) -> Cow<'_, str> {
        let event = self.session.events.iter().find(|event| event.source == source);
        event.map_or_else(|| format!("{source:#04x}").into(), |event| event.name.as_str().into())
    }
}

/// Why single samples could not be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The recording, which was read before, can not be read again.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output takes no more.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Gives every record of a recording to `each`, as far as its blocks are whole.
pub(crate) fn for_each_record(
    input: impl Read,
    mut each: impl FnMut(&Sample) -> io::Result<()>,
) -> Result<(), ExportError> {
    for block in Reader::new(input)?.map_while(Result::ok) {
        if let Block::Samples(records) = block {
            records.iter().try_for_each(&mut each)?;
        }
    }
    Ok(())
}
