//! Counts samples by location in one pass.

use std::collections::BTreeMap;
use std::ops::{AddAssign, RangeInclusive};
use std::sync::{Mutex, PoisonError};

use protocol::{AnySample, PauseKind, PauseRecord, PreciseKind, PreciseSample, Record, SampleRecord, StopKind};
use rayon::prelude::*;
use recording::{CountedPlace, DecompressedSamples, EncodedSamples, PlaceCounts, ReadError, SampleColumns, StackId};

use crate::locations::{Detail, LocationAdder, Locations, SampleLocation, SharedLocations};
use crate::parallelism::{Parallelism, latency};
use crate::process_keys::{Creations, ProcessKey};
use crate::sampled_sources::{SampledSource, SampledSources};
use crate::slice::Slice;
use crate::stack_stats::{StackEnds, StackStats, outcome};
use crate::sums::SampleWeight;

/// Sum over all samples of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Total {
    /// Samples and events.
    pub weight: SampleWeight,
    /// Samples that are PEBS records of the instruction that caused the event.
    pub precise: u64,
    /// Samples that are PEBS records of the next instruction.
    pub precise_next: u64,
    /// Wall time of the samples in units of events: those of each divided by the parallelism; 0 unless selected by
    /// [`Detail`].
    pub latency: u64,
    /// Samples whose parallelism is unknown.
    pub unknown: u64,
    /// Sum of the squared events per sample, from which the effective number of samples is computed.
    pub squares: u128,
}

impl AddAssign for Total {
    fn add_assign(&mut self, other: Self) {
        self.weight += other.weight;
        self.precise += other.precise;
        self.precise_next += other.precise_next;
        self.latency = self.latency.saturating_add(other.latency);
        self.unknown += other.unknown;
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
    /// Number of times that the counters were found not to interrupt: the LVT entry was not the HAL's any more.
    pub disconnections: u64,
    /// Total duration of those that ended, in units of the recording's clock.
    pub disconnected: u64,
}

impl AddAssign for LossStats {
    fn add_assign(&mut self, other: Self) {
        self.lost = self.lost.saturating_add(other.lost);
        self.pauses += other.pauses;
        self.paused = self.paused.saturating_add(other.paused);
        self.sleeps += other.sleeps;
        self.slept = self.slept.saturating_add(other.slept);
        self.silences += other.silences;
        self.disconnections += other.disconnections;
        self.disconnected = self.disconnected.saturating_add(other.disconnected);
    }
}

/// Samples counted by location: those of a slice. Totals and losses are of the whole recording, except
/// [`selected_losses`](Self::selected_losses).
#[derive(Debug, Clone, Default)]
pub struct SampleCounts {
    rules: Rules,
    locations: Locations,
    sums: RecordSums,
}

/// Which samples are counted, and what distinguishes them.
#[derive(Debug, Clone, Default)]
struct Rules {
    detail: Detail,
    slice: Slice,
    sources: SampledSources,
    creations: Creations,
    parallelism: Parallelism,
}

impl Rules {
    /// Returns whether all samples of a place have the same location and source, and are selected: nothing depends on
    /// their processors and times.
    fn depend_on_places(&self) -> bool {
        !self.detail.processor
            && !self.detail.parallelism
            && self.slice.is_whole()
            && !self.sources.depend_on_processors()
    }
}

/// Sums over all records.
#[derive(Debug, Clone, Default)]
struct RecordSums {
    totals: BTreeMap<SampledSource, Total>,
    /// Only of sources with call stacks.
    stacks: BTreeMap<SampledSource, StackStats>,
    loss_stats: BTreeMap<(u32, u32), LossStats>,
    /// Those of the slice, if it is not the whole recording.
    selected_losses: BTreeMap<(u32, u32), LossStats>,
    earliest: Option<u64>,
    latest: Option<u64>,
    unreadable: u64,
}

impl AddAssign for RecordSums {
    fn add_assign(&mut self, other: Self) {
        for (source, total) in other.totals {
            *self.totals.entry(source).or_default() += total;
        }
        for (source, stats) in other.stacks {
            *self.stacks.entry(source).or_default() += stats;
        }
        for (key, stats) in other.loss_stats {
            *self.loss_stats.entry(key).or_default() += stats;
        }
        for (key, stats) in other.selected_losses {
            *self.selected_losses.entry(key).or_default() += stats;
        }
        self.earliest = self.earliest.into_iter().chain(other.earliest).min();
        self.latest = self.latest.max(other.latest);
        self.unreadable += other.unreadable;
    }
}

impl SampleCounts {
    /// Creates counts without samples.
    #[must_use]
    pub fn new(detail: Detail) -> Self {
        Self { rules: Rules { detail, ..Rules::default() }, ..Self::default() }
    }

    /// Counts only the samples of `slice` by location.
    #[must_use]
    pub(crate) fn with_slice(self, slice: Slice) -> Self {
        Self { rules: Rules { slice, ..self.rules }, ..self }
    }

    /// Distinguishes processes with the same ID.
    #[must_use]
    pub(crate) fn with_creations(self, creations: Creations) -> Self {
        Self { rules: Rules { creations, ..self.rules }, ..self }
    }

    /// Distinguishes on how many processors a process ran.
    #[must_use]
    pub(crate) fn with_parallelism(self, parallelism: Parallelism) -> Self {
        Self { rules: Rules { parallelism, ..self.rules }, ..self }
    }

    /// Returns what distinguishes locations.
    pub(crate) const fn detail(&self) -> Detail {
        self.rules.detail
    }

    /// Distinguishes core types and modes.
    #[must_use]
    pub(crate) fn with_sources(self, sources: SampledSources) -> Self {
        Self { rules: Rules { sources, ..self.rules }, ..self }
    }

    /// Returns the source of an event on the core type of a processor.
    #[must_use]
    pub fn source_on(&self, source: u32, processor: u32) -> SampledSource {
        self.rules.sources.source_on(source, processor)
    }

    /// Returns the source of a sample.
    #[must_use]
    pub fn source_of(&self, sample: &AnySample) -> SampledSource {
        self.rules.sources.source_of(sample)
    }

    /// Returns the source of a record.
    #[must_use]
    pub fn source_of_record(&self, record: &Record) -> SampledSource {
        let sample = record.sample();
        sample.map_or_else(|| self.source_on(record.event(), record.processor()), |sample| self.source_of(&sample))
    }

    /// Counts `records`, in any order.
    pub fn add(&mut self, records: &[SampleRecord]) {
        let locations = self.locations.shared();
        let mut counter = Counter::new(&self.rules, &locations);
        counter.add(records.iter().map(|record| (*record, CountedStack::default())));
        self.sums += counter.finish();
    }

    /// Decodes and counts all blocks, in any order, in several threads. A block that cannot be decoded is left out;
    /// returns the error of one of them.
    /// `ends` are those of the call stacks before each block.
    pub(crate) fn add_blocks(
        &mut self,
        blocks: impl Iterator<Item = EncodedSamples> + Send,
        ends: &StackEnds,
    ) -> Option<ReadError> {
        let (rules, locations) = (&self.rules, self.locations.shared());
        let failed = Mutex::new(None);
        let counted = blocks.par_bridge().fold(
            || Counter::new(rules, &locations),
            |mut counter, block| {
                let added = block.decompress().and_then(|block| counter.add_block(&block, ends));
                if let Err(error) = added {
                    *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
                counter
            },
        );
        let sum = |mut one: RecordSums, other| {
            one += other;
            one
        };
        self.sums += counted.map(Counter::finish).reduce(RecordSums::default, sum);
        failed.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the locations. Totals and losses stay.
    pub(crate) fn set_locations(&mut self, locations: Locations) {
        self.locations = locations;
    }

    /// Returns every location of the slice and its samples, in no particular order.
    pub fn locations(&self) -> impl Iterator<Item = (SampleLocation, SampleWeight)> {
        self.locations.iter()
    }

    /// Returns the locations of the slice that `selects` accepts and their samples, in ascending order.
    pub(crate) fn sorted_locations(
        &self,
        selects: impl Fn(&SampleLocation) -> bool,
    ) -> impl Iterator<Item = (SampleLocation, SampleWeight)> {
        self.locations.sorted(selects)
    }

    /// Returns what [`locations`](Self::locations) returns in parts, for several threads.
    pub(crate) fn location_parts(
        &self,
    ) -> impl ParallelIterator<Item = impl Iterator<Item = (SampleLocation, SampleWeight)>> {
        self.locations.parts()
    }

    /// Returns the sources that have samples and their totals, in ascending order.
    pub fn totals(&self) -> impl Iterator<Item = (SampledSource, Total)> {
        self.sums.totals.iter().map(|(source, total)| (*source, *total))
    }

    /// Returns the total of `source`.
    #[must_use]
    pub fn total(&self, source: impl Into<SampledSource>) -> Total {
        self.sums.totals.get(&source.into()).copied().unwrap_or_default()
    }

    /// Returns how many samples of `source` have call stacks, in the whole recording.
    #[must_use]
    pub fn stack_stats(&self, source: impl Into<SampledSource>) -> StackStats {
        self.sums.stacks.get(&source.into()).copied().unwrap_or_default()
    }

    /// Returns losses, throttling and sleep by source and processor, in ascending order. The source is
    /// [`ALL_EVENTS`](protocol::ALL_EVENTS) if all sources sampled on the processor were affected.
    pub fn loss_stats(&self) -> impl Iterator<Item = (u32, u32, LossStats)> {
        self.sums.loss_stats.iter().map(|((source, processor), stats)| (*source, *processor, *stats))
    }

    /// Returns what [`loss_stats`](Self::loss_stats) returns for the slice: the losses and stops in its time, and the
    /// parts of pauses and sleep that are in it.
    pub fn selected_losses(&self) -> impl Iterator<Item = (u32, u32, LossStats)> {
        let is_whole = self.rules.slice.is_whole();
        let losses = if is_whole { &self.sums.loss_stats } else { &self.sums.selected_losses };
        losses.iter().map(|((source, processor), stats)| (*source, *processor, *stats))
    }

    /// Returns how often the machine slept and the total duration, in units of the recording's clock. Every processor
    /// records the same sleeps unless its ring was full, so this is the maximum over all processors.
    #[must_use]
    pub fn slept(&self) -> (u64, u64) {
        let told = self.loss_stats().map(|(.., stats)| (stats.sleeps, stats.slept));
        told.max().unwrap_or_default()
    }

    /// Returns the time of the earliest record, in units of the recording's clock.
    #[must_use]
    pub fn earliest(&self) -> Option<u64> {
        self.sums.earliest
    }

    /// Returns the time of the latest record, in units of the recording's clock.
    #[must_use]
    pub fn latest(&self) -> Option<u64> {
        self.sums.latest
    }

    /// Returns the number of records of unknown kinds and of damaged records.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        self.sums.unreadable
    }
}

/// The call stack of a sample, and what is counted about it where call stacks are recorded.
#[derive(Debug, Clone, Copy, Default)]
struct CountedStack {
    stack: StackId,
    outcome: Option<StackId>,
}

/// What places have in common, and the total of their samples.
#[derive(Debug)]
struct PlaceGroup {
    source: SampledSource,
    /// The kind of the samples, if they are PEBS records.
    kind: Option<PreciseKind>,
    /// Number of the group of their locations.
    locations: u32,
    total: Total,
}

/// Counts records in one thread.
struct Counter<'a, 'b> {
    rules: &'a Rules,
    locations: LocationAdder<'a, 'b>,
    sums: RecordSums,
    /// The total of successive samples of one source, which is looked up once for all of them.
    run: (SampledSource, Total),
}

impl<'a, 'b> Counter<'a, 'b> {
    fn new(rules: &'a Rules, locations: &'a SharedLocations<'b>) -> Self {
        let run = (SampledSource::from(0), Total::default());
        Self { rules, locations: LocationAdder::new(locations), sums: RecordSums::default(), run }
    }

    fn add(&mut self, records: impl Iterator<Item = (SampleRecord, CountedStack)>) {
        let RecordSums { mut earliest, mut latest, .. } = self.sums;
        for (record, stack) in records {
            earliest = Some(earliest.map_or(record.time(), |earliest| earliest.min(record.time())));
            latest = latest.max(Some(record.time()));
            match record.parse() {
                Ok(record) => self.add_one(&record, stack),
                Err(_) => self.sums.unreadable += 1,
            }
        }
        self.sums.earliest = earliest;
        self.sums.latest = latest;
    }

    /// Counts the samples of a block, place by place if the rules allow it.
    fn add_block(&mut self, block: &DecompressedSamples, ends: &StackEnds) -> Result<(), ReadError> {
        if !self.rules.depend_on_places() {
            self.add_columns(&block.columns()?, ends, |_| true);
            return Ok(());
        }
        let counts = block.place_counts()?;
        let PlaceCounts { earliest, latest, .. } = counts;
        self.sums.earliest = self.sums.earliest.into_iter().chain([earliest]).min();
        self.sums.latest = self.sums.latest.max(Some(latest));
        let outcomes = outcomes(counts.places.iter().map(|place| place.stack), ends);
        let mut groups: Vec<Option<PlaceGroup>> =
            counts.groups.iter().map(|group| self.place_group(group, &(earliest..=latest))).collect();
        for (index, CountedPlace { address, group, stack, samples, numbers, squares }) in
            counts.places.iter().enumerate()
        {
            let Some(Some(group)) = groups.get_mut(*group as usize) else { continue };
            let weight = SampleWeight { samples: (*samples).into(), events: *numbers };
            let shown = if self.rules.detail.stacks { *stack } else { StackId::NOT_RECORDED };
            self.locations.add_to(group.locations, *address, shown, weight);
            group.total.weight += weight;
            group.total.squares += squares;
            if let Some(outcome) = outcomes.get(index) {
                self.sums.stacks.entry(group.source).or_default().add(*outcome, weight.samples);
            }
        }
        for PlaceGroup { source, total, kind, .. } in groups.iter().flatten() {
            self.add_total(*source, *kind, *total);
        }
        if groups.iter().any(Option::is_none) {
            let is_counted = |place: &CountedPlace| groups.get(place.group as usize).is_some_and(Option::is_some);
            let is_other = |place: usize| counts.places.get(place).is_some_and(|place| !is_counted(place));
            self.add_columns(&block.columns()?, ends, is_other);
        }
        Ok(())
    }

    /// Counts the samples of the places that `selects` accepts, each by itself.
    fn add_columns(&mut self, columns: &SampleColumns, ends: &StackEnds, selects: impl Fn(usize) -> bool) {
        let outcomes = outcomes(columns.stacks.iter().copied(), ends);
        let stack_of = |place: usize| CountedStack {
            stack: columns.stacks.get(place).copied().unwrap_or_default(),
            outcome: outcomes.get(place).copied(),
        };
        let places = columns.place.iter().map(|place| *place as usize);
        let selected = columns.records().zip(places).filter(|(_, place)| selects(*place));
        self.add(selected.map(|(record, place)| (record, stack_of(place))));
    }

    /// Returns what the places of a group have in common; `None` if their samples differ in more than the intervals:
    /// events of a branch, records that are no samples, and processes, if several had the ID during the `times`.
    fn place_group(&mut self, group: &SampleRecord, times: &RangeInclusive<u64>) -> Option<PlaceGroup> {
        let Ok(record @ (Record::Sample(_) | Record::Precise(_))) = group.parse() else { return None };
        let Rules { detail, sources, creations, .. } = self.rules;
        let sample = record.sample()?;
        let process = creations.during(sample.process, times)?;
        let source = sources.source_of(&sample);
        let common = SampleLocation::of(&sample, process, *detail);
        let locations = self.locations.group(SampleLocation { core_type: source.core_type, ..common });
        Some(PlaceGroup { source, kind: precise_kind(&record), locations, total: Total::default() })
    }

    fn add_one(&mut self, record: &Record, stack: CountedStack) {
        if let Some(sample) = record.sample() {
            let weight = SampleWeight { samples: 1, events: sample.events };
            let squares = u128::from(sample.events).pow(2);
            let process = self.rules.creations.at(sample.process, sample.time);
            return self.add_samples(&sample, stack, process, record, Total { weight, squares, ..Total::default() });
        }
        let (key, slice) = ((record.event(), record.processor()), &self.rules.slice);
        *self.sums.loss_stats.entry(key).or_default() += losses(record, &Slice::default());
        if !slice.is_whole() && slice.selects_processor(record.processor()) {
            *self.sums.selected_losses.entry(key).or_default() += losses(record, slice);
        }
    }

    /// Adds samples that differ from `sample` only in what the rules do not need. `added` has their weight and squares.
    fn add_samples(
        &mut self,
        sample: &AnySample,
        CountedStack { stack, outcome }: CountedStack,
        process: ProcessKey,
        record: &Record,
        mut added: Total,
    ) {
        let Rules { detail, slice, sources, parallelism, .. } = self.rules;
        let sampled = sources.source_of(sample);
        if let Some(outcome) = outcome {
            self.sums.stacks.entry(sampled).or_default().add(outcome, added.weight.samples);
        }
        let parallelism = if detail.parallelism { parallelism.at(process, sample.time) } else { 0 };
        if detail.parallelism {
            added.latency = latency(process, parallelism, added.weight);
            added.unknown = if parallelism == 0 { added.weight.samples } else { 0 };
        }
        if slice.selects_sample(sample) {
            let SampledSource { core_type, .. } = sampled;
            let stack = if detail.stacks { stack } else { StackId::NOT_RECORDED };
            let common = SampleLocation::of(sample, process, *detail);
            let location = SampleLocation { core_type, parallelism, stack, ..common };
            self.locations.add(location, added.weight);
        }
        self.add_total(sampled, precise_kind(record), added);
    }

    /// Adds samples of a source to its total. All of them are PEBS records of this kind, or none.
    fn add_total(&mut self, source: SampledSource, kind: Option<PreciseKind>, mut added: Total) {
        if self.run.0 != source {
            self.end_run();
            self.run = (source, Total::default());
        }
        match kind {
            Some(PreciseKind::Precise) => added.precise = added.weight.samples,
            Some(PreciseKind::PreciseNext) => added.precise_next = added.weight.samples,
            None => {}
        }
        self.run.1 += added;
    }

    /// Adds the total of successive samples of one source.
    fn end_run(&mut self) {
        let (source, total) = self.run;
        if total.weight.samples > 0 {
            *self.sums.totals.entry(source).or_default() += total;
        }
    }

    fn finish(mut self) -> RecordSums {
        self.end_run();
        self.locations.finish();
        self.sums
    }
}

/// Returns what is beyond the outermost caller of each of these stacks, or why there is no stack; nothing if call
/// stacks were not recorded.
fn outcomes(stacks: impl Iterator<Item = StackId> + Clone, ends: &StackEnds) -> Vec<StackId> {
    if stacks.clone().all(|stack| stack == StackId::NOT_RECORDED) {
        return Vec::new();
    }
    let ends = ends.read();
    stacks.map(|stack| outcome(&ends, stack)).collect()
}

/// Returns the kind of a PEBS record.
fn precise_kind(record: &Record) -> Option<PreciseKind> {
    match record {
        Record::Precise(PreciseSample { kind, .. }) => Some(*kind),
        _ => None,
    }
}

/// Returns what a record tells that is in the time of a slice. A pause is recorded at its end.
fn losses(record: &Record, slice: &Slice) -> LossStats {
    let none = LossStats::default();
    let is_inside = u64::from(slice.selects_time(record.time()));
    match record {
        Record::Sample(_)
        | Record::Precise(_)
        | Record::Branch(_)
        | Record::LastBranch(_)
        | Record::Access(_)
        | Record::OffCpu(_) => none,
        Record::Lost(lost) => LossStats { lost: is_inside * lost.count, ..none },
        Record::Stop(stop) => match stop.kind {
            StopKind::Throttled => LossStats { pauses: is_inside, ..none },
            StopKind::Silenced => LossStats { silences: is_inside, ..none },
            StopKind::Disconnected => LossStats { disconnections: is_inside, ..none },
        },
        Record::Pause(PauseRecord { kind, time, duration, .. }) => {
            let duration = slice.selected_units(*time, *duration);
            match kind {
                PauseKind::Resumed => LossStats { paused: duration, ..none },
                PauseKind::Reconnected => LossStats { disconnected: duration, ..none },
                PauseKind::Slept => LossStats { sleeps: is_inside, slept: duration, ..none },
            }
        }
    }
}
