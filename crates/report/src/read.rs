//! Reads a recording: one pass for everything except single samples, another pass for those.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::iter;
use std::ops::Range;
use std::time::Duration;

use protocol::{ALL_EVENTS, Record, modes};
use recording::{EncodedBlock, ReadError, Reader, RecordedEvent, RecordedSession, StackId, StackTree, Summary};
use thiserror::Error;

use crate::input::{Blocks, Input};
use crate::locations::Detail;
use crate::parallelism::Parallelism;
use crate::process_keys::{Creations, ProcessKey};
use crate::processes::Processes;
use crate::sample_counts::SampleCounts;
use crate::sampled_sources::{SampledSource, SampledSources, qualified};
use crate::slice::Slice;
use crate::stack_stats::StackEnds;

/// Nanoseconds per second.
const NANOSECONDS: u128 = 1_000_000_000;

/// Nanoseconds per millisecond.
const MILLISECOND: u64 = 1_000_000;

/// Nanoseconds per unit of the durations in the summary of a recording.
const SUMMARY_UNIT: u64 = 100;

/// The contents of a recording, except single samples.
#[derive(Debug)]
pub struct Contents {
    /// Parameters of the recording.
    pub session: RecordedSession,
    /// Processes and their modules.
    pub processes: Processes,
    /// Samples by location.
    pub sample_counts: SampleCounts,
    /// Call stacks; empty unless selected by [`Detail::stacks`].
    pub stacks: StackTree,
    /// Whether the stacks are the [last branches](Self::use_branch_history) of the samples.
    pub(crate) has_branch_history: bool,
    /// The summary block; `None` if reading stopped before it.
    pub summary: Option<Summary>,
    /// The error that stopped reading, if the recording is incomplete or damaged.
    pub damage: Option<ReadError>,
}

impl Contents {
    /// Reads all blocks of a recording up to the first damaged one.
    ///
    /// # Errors
    /// If the file header or the first block cannot be read. Later damage is reported in [`damage`](Self::damage).
    pub fn read(input: &mut dyn Input, detail: Detail) -> Result<Self, ReadError> {
        Self::read_slice(input, detail, Slice::default())
    }

    /// Reads all blocks as [`read`](Self::read) does, and counts only the samples of `slice` by location.
    ///
    /// # Errors
    /// As of [`read`](Self::read).
    pub fn read_slice(input: &mut dyn Input, detail: Detail, slice: Slice) -> Result<Self, ReadError> {
        let creations = creations(input)?;
        let parallelism =
            if detail.parallelism { Parallelism::read(input, &creations)? } else { Parallelism::default() };
        let mut blocks = Reader::new(input)?;
        let Some(EncodedBlock::Session(session)) = blocks.next_encoded().transpose()? else {
            return Err(ReadError::CutOff { offset: 0 });
        };
        let mut contents = Self {
            sample_counts: SampleCounts::new(detail)
                .with_sources(SampledSources::new(&session))
                .with_creations(creations.clone())
                .with_parallelism(parallelism)
                .with_slice(slice),
            session,
            processes: Processes::with_creations(creations),
            stacks: StackTree::default(),
            has_branch_history: false,
            summary: None,
            damage: None,
        };
        let Self { processes, sample_counts, stacks, summary, damage, .. } = &mut contents;
        let ends = StackEnds::default();
        let mut next_samples = || {
            while let Some(block) = blocks.next_encoded() {
                match block {
                    Ok(EncodedBlock::Process(process)) => processes.add(&process),
                    // Checked here, in the order of the file: nothing after a damaged block is counted.
                    Ok(EncodedBlock::Samples(samples)) => return samples.verify().map(|()| Some(samples)),
                    Ok(EncodedBlock::Summary(end)) => *summary = Some(end),
                    // The reader rejects a second session.
                    Ok(EncodedBlock::Session(_)) => {}
                    Ok(EncodedBlock::Methods(methods)) => processes.add_methods(&methods),
                    Ok(EncodedBlock::Stacks(block)) => {
                        let mut nodes = block.decode()?;
                        ends.add(&mut nodes);
                        if detail.stacks {
                            stacks.add(&nodes);
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(None)
        };
        let blocks = iter::from_fn(|| {
            if damage.is_some() {
                return None;
            }
            next_samples().unwrap_or_else(|error| {
                *damage = Some(error);
                None
            })
        });
        let undecoded = sample_counts.add_blocks(blocks, &ends);
        contents.damage = contents.damage.or(undecoded);
        Ok(contents)
    }

    /// Returns the time that `slice` selects, in nanoseconds after the earliest record, and at most the duration of the
    /// recording.
    #[must_use]
    pub fn selected_time(&self, slice: &Slice) -> Range<u64> {
        let recorded = self.sample_counts.latest().map_or(0, |latest| self.nanoseconds(latest));
        let elapsed = self.summary.as_ref().map(|summary| summary.sampled_time().saturating_mul(SUMMARY_UNIT));
        let all = elapsed.unwrap_or(recorded);
        let Some(wanted) = &slice.time else { return 0..all };
        let [begin, end] = [wanted.start, wanted.end].map(|time| self.nanoseconds(time).min(all));
        begin..end
    }

    /// Returns when the time that `slice` selects begins, in nanoseconds since 1970.
    #[must_use]
    pub fn selected_since(&self, slice: &Slice) -> u64 {
        let removed = self.summary.as_ref().map_or(0, |summary| summary.elapsed.saturating_sub(summary.sampled_time()));
        let created = self.session.created_unix_ms.saturating_mul(MILLISECOND);
        let earliest = created.saturating_add(removed.saturating_mul(SUMMARY_UNIT));
        earliest.saturating_add(self.selected_time(slice).start)
    }

    /// Returns the command, or that all processes were recorded, in a line.
    #[must_use]
    pub fn command_text(&self) -> String {
        let command = &self.session.command;
        if command.is_empty() { "all processes".to_owned() } else { command.join(" ") }
    }

    /// Returns which time, processors and threads `slice` selects; `None` if it is the whole recording.
    #[must_use]
    pub fn slice_text(&self, slice: &Slice) -> Option<String> {
        let list = |noun: &str, numbers: &Option<BTreeSet<u32>>| {
            let numbers: Vec<String> = numbers.as_ref()?.iter().map(ToString::to_string).collect();
            let plural = if numbers.len() == 1 { "" } else { "s" };
            Some(format!("{noun}{plural} {}", numbers.join(",")))
        };
        let time = slice.time.as_ref().map(|_| {
            let Range { start, end } = self.selected_time(slice);
            let [start, end] = [start, end].map(|time| Duration::from_nanos(time).as_secs_f64());
            format!("{start:.3} s to {end:.3} s")
        });
        let parts = [time, list("CPU", &slice.processors), list("thread", &slice.threads)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Returns the time from the earliest record to `time`.
    ///
    /// # Units
    /// `time` is in units of the recording's clock, the result in nanoseconds.
    #[must_use]
    pub fn nanoseconds(&self, time: u64) -> u64 {
        self.duration(time.saturating_sub(self.sample_counts.earliest().unwrap_or(time)))
    }

    /// Converts units of the recording's clock to nanoseconds.
    #[must_use]
    pub fn duration(&self, units: u64) -> u64 {
        let nanoseconds = u128::from(units) * NANOSECONDS / u128::from(self.session.clock.max(1));
        nanoseconds.try_into().unwrap_or(u64::MAX)
    }

    /// Returns the event of `source`; `None` if a damaged recording has no such event.
    #[must_use]
    pub fn event(&self, source: impl Into<SampledSource>) -> Option<&RecordedEvent> {
        self.session.events.get(usize::try_from(source.into().event).ok()?)
    }

    /// Returns the name of `source` in this recording. On a hybrid the name of its core type stands before it; if the
    /// recording has an event of this name in other modes too, it ends in `:u`, `:k` or `:p`.
    #[must_use]
    pub fn source_name(&self, source: impl Into<SampledSource>) -> Cow<'_, str> {
        let source = source.into();
        let SampledSource { event: index, core_type } = source;
        let event = self.event(source);
        let plain: Cow<'_, str> = match event {
            Some(event) => event.name.as_str().into(),
            None if index == ALL_EVENTS => "every event".into(),
            None => format!("event {index}").into(),
        };
        let name = match self.session.core_types.iter().find(|one| one.core_type == core_type) {
            Some(core_type) => Cow::from(qualified(&plain, &core_type.name)),
            None => plain,
        };
        let is_in_other_modes = |event: &&RecordedEvent| {
            self.session.events.iter().any(|one| one.name == event.name && one.modes != event.modes)
        };
        match event.filter(is_in_other_modes) {
            Some(event) => format!("{name}{}", modes::suffix(event.modes)).into(),
            None => name,
        }
    }
}

/// Reads when processes were created, and returns to the start. A sample can only be counted for its process if all
/// processes with its ID are known, and they are recorded later than their first samples.
fn creations(input: &mut dyn Input) -> Result<Creations, ReadError> {
    let mut creations = Creations::default();
    let mut blocks = Reader::new(&mut *input)?.without_samples();
    // Damage is found again when the samples are read.
    while let Some(Ok(block)) = blocks.next_encoded() {
        if let EncodedBlock::Process(process) = block {
            creations.add(ProcessKey::of(&process));
        }
    }
    input.rewind().map_err(|cause| ReadError::Read { offset: 0, cause })?;
    Ok(creations)
}

/// Why single samples were not exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The recording cannot be read again.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Passes every record of a recording and its call stack to `each`, up to the first damaged block. Records that cannot
/// be read are left out: [`SampleCounts::unreadable`] has counted them.
pub(crate) fn for_each_record(
    input: &mut dyn Input,
    each: impl FnMut(&Record, StackId) -> io::Result<()>,
) -> Result<(), ExportError> {
    each_of(Reader::new(input)?, each)
}

/// Passes every record of these blocks to `each`, up to the first damaged block.
pub(crate) fn each_of(
    blocks: Blocks<'_>,
    mut each: impl FnMut(&Record, StackId) -> io::Result<()>,
) -> Result<(), ExportError> {
    for block in blocks.map_while(Result::ok) {
        let records = block.samples().filter_map(|(record, stack)| Some((record.parse().ok()?, stack)));
        records.into_iter().try_for_each(|(record, stack)| each(&record, stack))?;
    }
    Ok(())
}
