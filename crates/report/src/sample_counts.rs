//! Counts samples by location in one pass.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use protocol::{AnySample, PauseKind, PauseRecord, PreciseKind, PreciseSample, Record, SampleRecord, StopKind};
use recording::RecordedEvent;

use crate::locations::{Detail, Locations, SampleLocation, SampleWeight};
use crate::sampled_sources::{SampledSource, SampledSources};
use crate::slice::Slice;

/// Sum over all samples of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// Samples and events.
    pub weight: SampleWeight,
    /// Samples that are PEBS records of the instruction that caused the event.
    pub precise: u64,
    /// Samples that are PEBS records of the next instruction.
    pub precise_next: u64,
    /// Sum of the squared events per sample, from which the effective number of samples is computed.
    pub squares: u128,
}

impl AddAssign for Total {
    fn add_assign(&mut self, other: Self) {
        self.weight += other.weight;
        self.precise += other.precise;
        self.precise_next += other.precise_next;
        self.squares += other.squares;
    }
}

/// Losses, throttling and sleep that affected a source on a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LossStats {
    /// Number of lost samples.
    pub lost: u64,
    /// Number of pauses because interrupts had used up their time budget.
    pub pauses: u64,
    /// Total duration of the pauses that ended, in units of the recording's clock.
    pub paused: u64,
    /// Number of times that the machine slept.
    pub sleeps: u64,
    /// Total duration of sleep, in units of the recording's clock.
    pub slept: u64,
    /// Number of times that sampling stopped because of too many spurious interrupts.
    pub silences: u64,
}

/// Samples counted by location: those of a slice. Totals and losses are of the whole recording.
#[derive(Debug, Clone, Default)]
pub struct SampleCounts {
    detail: Detail,
    slice: Slice,
    locations: Locations,
    sources: SampledSources,
    totals: BTreeMap<SampledSource, Total>,
    loss_stats: BTreeMap<(u32, u32), LossStats>,
    earliest: Option<u64>,
    unreadable: u64,
}

impl SampleCounts {
    /// Creates counts without samples.
    #[must_use]
    pub fn new(detail: Detail) -> Self {
        Self { detail, ..Self::default() }
    }

    /// Counts only the samples of `slice` by location.
    #[must_use]
    pub(crate) fn with_slice(self, slice: Slice) -> Self {
        Self { slice, ..self }
    }

    /// Distinguishes core types and modes.
    #[must_use]
    pub(crate) fn with_sources(self, sources: SampledSources) -> Self {
        Self { sources, ..self }
    }

    /// Returns a source on the core type of a processor, as records of losses and pauses have it: for both modes.
    #[must_use]
    pub fn source_on(&self, source: u32, processor: u32) -> SampledSource {
        self.sources.source_on(source, processor)
    }

    /// Returns the source of a sample.
    #[must_use]
    pub fn source_of(&self, sample: &AnySample) -> SampledSource {
        self.sources.source_of(sample)
    }

    /// Returns the source of a record.
    #[must_use]
    pub fn source_of_record(&self, record: &Record) -> SampledSource {
        let sample = record.sample();
        sample.map_or_else(|| self.source_on(record.source(), record.processor()), |sample| self.source_of(&sample))
    }

    /// Returns the source of a requested event on a processor.
    #[must_use]
    pub fn source_of_event(&self, event: &RecordedEvent, processor: u32) -> SampledSource {
        self.sources.source_of_event(event, processor)
    }

    /// Counts `records`, in any order.
    pub fn add(&mut self, records: &[SampleRecord]) {
        // Successive samples are mostly of one source: its total is looked up once for all of them.
        let mut run = (SampledSource::from(0), Total::default());
        for record in records {
            match record.parse() {
                Ok(record) => self.add_one(&record, &mut run),
                Err(_) => self.unreadable += 1,
            }
        }
        self.end_run(&run);
        let earliest = records.iter().map(SampleRecord::time).min();
        self.earliest = self.earliest.into_iter().chain(earliest).min();
    }

    /// Adds the total of successive samples of one source.
    fn end_run(&mut self, (source, total): &(SampledSource, Total)) {
        if total.weight.samples > 0 {
            *self.totals.entry(*source).or_default() += *total;
        }
    }

    fn add_one(&mut self, record: &Record, run: &mut (SampledSource, Total)) {
        if let Some(sample) = record.sample() {
            return self.add_sample(&sample, record, run);
        }
        let stats = self.loss_stats.entry((record.source(), record.processor())).or_default();
        match record {
            Record::Sample(_) | Record::Precise(_) | Record::Branch(_) => {}
            Record::Lost(lost) => stats.lost = stats.lost.saturating_add(lost.count),
            Record::Stop(stop) => match stop.kind {
                StopKind::Throttled => stats.pauses += 1,
                StopKind::Silenced => stats.silences += 1,
            },
            Record::Pause(PauseRecord { kind: PauseKind::Resumed, duration, .. }) => {
                stats.paused = stats.paused.saturating_add(*duration);
            }
            Record::Pause(PauseRecord { kind: PauseKind::Slept, duration, .. }) => {
                stats.sleeps += 1;
                stats.slept = stats.slept.saturating_add(*duration);
            }
        }
    }

    fn add_sample(&mut self, sample: &AnySample, record: &Record, run: &mut (SampledSource, Total)) {
        let weight = SampleWeight { samples: 1, events: sample.events };
        let sampled = self.source_of(sample);
        if self.slice.selects_sample(sample) {
            let SampledSource { core_type, mode, .. } = sampled;
            let by_mode = mode.is_some();
            let location = SampleLocation { core_type, by_mode, ..SampleLocation::of(sample, self.detail) };
            self.locations.add(location, weight);
        }
        if run.0 != sampled {
            self.end_run(run);
            *run = (sampled, Total::default());
        }
        let total = &mut run.1;
        total.weight += weight;
        total.squares += u128::from(sample.events * sample.events);
        if let Record::Precise(PreciseSample { kind, .. }) = record {
            match kind {
                PreciseKind::Precise => total.precise += 1,
                PreciseKind::PreciseNext => total.precise_next += 1,
            }
        }
    }

    /// Returns every location of the slice and its samples, in no particular order.
    pub fn locations(&self) -> impl Iterator<Item = (SampleLocation, SampleWeight)> {
        self.locations.iter()
    }

    /// Returns the sources that have samples and their totals, in ascending order.
    pub fn totals(&self) -> impl Iterator<Item = (SampledSource, Total)> {
        self.totals.iter().map(|(source, total)| (*source, *total))
    }

    /// Returns the total of `source`.
    #[must_use]
    pub fn total(&self, source: impl Into<SampledSource>) -> Total {
        self.totals.get(&source.into()).copied().unwrap_or_default()
    }

    /// Returns losses, throttling and sleep by source and processor, in ascending order. The source is
    /// [`ALL_SOURCES`](protocol::ALL_SOURCES) if all sources sampled on the processor were affected.
    pub fn loss_stats(&self) -> impl Iterator<Item = (u32, u32, LossStats)> {
        self.loss_stats.iter().map(|((source, processor), stats)| (*source, *processor, *stats))
    }

    /// Returns how often the machine slept and the total duration, in units of the recording's clock. Every processor
    /// records the same sleeps unless its ring was full, so this is the maximum over all processors.
    #[must_use]
    pub fn slept(&self) -> (u64, u64) {
        let told = self.loss_stats.values().map(|stats| (stats.sleeps, stats.slept));
        told.max().unwrap_or_default()
    }

    /// Returns the time of the earliest record, in units of the recording's clock.
    #[must_use]
    pub fn earliest(&self) -> Option<u64> {
        self.earliest
    }

    /// Returns the number of records of unknown kinds and of damaged records.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }
}
