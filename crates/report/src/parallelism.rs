//! On how many processors a process runs when it is sampled.
//!
//! All processors are sampled, so a process runs on those that have samples of it at the time. The time between two
//! samples of a processor, the period, differs a little from one to the next. So a processor counts at a time if it has
//! a sample of the process within half a period, or one before and one after that are at most one and a half periods
//! apart. Of several events, the one with the most samples on a processor tells.
//!
//! Where samples are missing, a process may have run on more processors, so the parallelism is unknown.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use protocol::{Record, UNKNOWN};
use recording::{EncodedBlock, ReadError, Reader};
use rustc_hash::FxHashMap;

use crate::input::Input;
use crate::process_keys::{Creations, ProcessKey};
use crate::sums::SampleWeight;

/// The idle process, which has no latency.
const IDLE: u32 = 0;

/// Latency of an event while nothing else of its process runs.
const UNIT: u64 = 1_024;

/// Parts of a power of two in which periods are counted, as bits.
const PARTS: u32 = 5;

/// The parallelism of all processes of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parallelism {
    /// The number of processors from each time on, by process.
    steps: FxHashMap<ProcessKey, Vec<(u64, u32)>>,
    /// Disjoint times at which samples are missing, in ascending order.
    unknown: Vec<RangeInclusive<u64>>,
}

/// Returns the latency of samples of a process at this parallelism: its share of the wall time.
pub(crate) fn latency(process: ProcessKey, parallelism: u32, weight: SampleWeight) -> u64 {
    let units = if process.id == IDLE { 0 } else { weight.events.saturating_mul(UNIT) };
    units.checked_div(parallelism.into()).unwrap_or_default()
}

impl Parallelism {
    /// Reads all records up to the first damaged block.
    pub fn read(input: &mut dyn Input, creations: &Creations) -> Result<Self, ReadError> {
        let session = Reader::new(&mut *input)?.next_encoded().transpose()?;
        input.rewind().map_err(|cause| ReadError::Read { offset: 0, cause })?;
        if matches!(session, Some(EncodedBlock::Session(session)) if session.condition.is_some()) {
            // Without the windows that did not meet the condition, nothing is known of the other processors.
            return Ok(Self { unknown: vec![0..=u64::MAX], ..Self::default() });
        }
        let mut periods = Periods::default();
        each(input, |record| periods.add(record))?;
        let mut runs = Runs { chosen: periods.chosen(), ..Runs::default() };
        each(input, |record| runs.add(record, creations))?;
        Ok(runs.parallelism())
    }

    /// Returns on how many processors a process ran at the time of its sample; 0 if it is unknown.
    pub fn at(&self, process: ProcessKey, time: u64) -> u32 {
        let next = self.unknown.partition_point(|missing| *missing.end() < time);
        if process.id == UNKNOWN || self.unknown.get(next).is_some_and(|missing| missing.contains(&time)) {
            return 0;
        }
        let steps = self.steps.get(&process).map(Vec::as_slice).unwrap_or_default();
        let before = steps.partition_point(|(from, _)| *from <= time).checked_sub(1);
        // A sample of another event runs as well.
        before.and_then(|step| steps.get(step)).map_or(1, |(_, count)| (*count).max(1))
    }
}

fn each(input: &mut dyn Input, mut each: impl FnMut(&Record)) -> Result<(), ReadError> {
    for block in Reader::new(&mut *input)?.map_while(Result::ok) {
        block.samples().filter_map(|(record, _)| record.parse().ok()).for_each(|record| each(&record));
    }
    input.rewind().map_err(|cause| ReadError::Read { offset: 0, cause })
}

/// The times between the samples of a processor.
#[derive(Debug, Default)]
struct Periods {
    /// Time of the last sample and number of samples, by processor and event.
    samples: BTreeMap<(u32, u32), (u64, u64)>,
    /// Number of times between samples by their leading bits, by event.
    gaps: BTreeMap<u32, BTreeMap<u32, u64>>,
}

/// The event that tells of a processor, and its period.
#[derive(Debug, Clone, Copy)]
struct Chosen {
    event: u32,
    period: u64,
}

impl Periods {
    fn add(&mut self, record: &Record) {
        let Some(sample) = record.sample().filter(|_| !matches!(record, Record::OffCpu(_))) else { return };
        let (last, samples) = self.samples.entry((sample.processor, sample.event)).or_default();
        if *samples > 0 {
            let gaps = self.gaps.entry(sample.event).or_default();
            *gaps.entry(bucket(sample.time.saturating_sub(*last))).or_default() += 1;
        }
        (*last, *samples) = (sample.time, *samples + 1);
    }

    /// Chooses for each processor the event with the most samples, whose period is the median of all its processors.
    fn chosen(&self) -> FxHashMap<u32, Chosen> {
        let mut most: BTreeMap<u32, (u64, u32)> = BTreeMap::new();
        for ((processor, event), (_, samples)) in &self.samples {
            let one = most.entry(*processor).or_default();
            if *samples > one.0 {
                *one = (*samples, *event);
            }
        }
        let period = |event: u32| self.gaps.get(&event).map_or(0, median);
        most.into_iter().map(|(processor, (_, event))| (processor, Chosen { event, period: period(event) })).collect()
    }
}

/// Returns the leading bits of a time and their place as a number, in the order of times.
fn bucket(time: u64) -> u32 {
    let bits = u64::BITS - time.leading_zeros();
    let shift = bits.saturating_sub(PARTS + 1);
    (shift << (PARTS + 1)) + u32::try_from(time >> shift).unwrap_or(u32::MAX)
}

/// Returns the time in the middle of a bucket.
const fn middle(bucket: u32) -> u64 {
    let shift = bucket >> (PARTS + 1);
    let leading = (bucket & ((1 << (PARTS + 1)) - 1)) as u64;
    (leading << shift) + (1_u64 << shift) / 2
}

/// Returns the median of the counted times.
fn median(counts: &BTreeMap<u32, u64>) -> u64 {
    let half = counts.values().sum::<u64>().div_ceil(2);
    let mut passed = 0;
    let reached = counts.iter().find(|(_, count)| {
        passed += **count;
        passed >= half
    });
    reached.map_or(0, |(bucket, _)| middle(*bucket))
}

/// First and last sample of a process on a processor without a gap.
type Run = (u64, u64);

/// When the processes ran on each processor, and what is missing.
#[derive(Debug, Default)]
struct Runs {
    chosen: FxHashMap<u32, Chosen>,
    of: FxHashMap<(ProcessKey, u32), Vec<Run>>,
    /// Time of the last record of a processor, and whether sampling had stopped there.
    last: FxHashMap<u32, (u64, bool)>,
    unknown: Vec<Run>,
}

impl Runs {
    fn add(&mut self, record: &Record, creations: &Creations) {
        // It says that a thread does not run.
        if matches!(record, Record::OffCpu(_)) {
            return;
        }
        let (time, processor) = (record.time(), record.processor());
        let Some(Chosen { event, period }) = self.chosen.get(&processor).copied() else { return };
        let (last, was_stopped) = self.last.insert(processor, (time, false)).unwrap_or((time, false));
        if was_stopped {
            self.unknown.push(around((last, time), period));
        }
        if let Some(sample) = record.sample() {
            if sample.event == event && sample.process != UNKNOWN {
                let process = creations.at(sample.process, time);
                add_run(self.of.entry((process, processor)).or_default(), (time, time), period);
            }
            return;
        }
        if record.event() != event && record.event() != protocol::ALL_EVENTS {
            return;
        }
        let begin = if let Record::Pause(pause) = record { time.saturating_sub(pause.duration) } else { time };
        self.unknown.push(around((last.min(begin), time), period));
        self.last.insert(processor, (time, matches!(record, Record::Stop(_))));
    }

    fn parallelism(mut self) -> Parallelism {
        let stopped = self.last.values().filter(|(_, is_stopped)| *is_stopped);
        self.unknown.extend(stopped.map(|(time, _)| (*time, u64::MAX)));
        let mut changes: FxHashMap<ProcessKey, Vec<(u64, i32)>> = FxHashMap::default();
        for ((process, processor), runs) in self.of {
            let period = self.chosen.get(&processor).map_or(0, |chosen| chosen.period);
            for run in joined(runs, period) {
                let (begin, end) = around(run, period);
                changes.entry(process).or_default().extend([(begin, 1), (end.saturating_add(1), -1)]);
            }
        }
        let steps = changes.into_iter().map(|(process, changes)| (process, counted(changes)));
        let unknown = joined(self.unknown, 0).into_iter().map(|(begin, end)| begin..=end);
        Parallelism { steps: steps.collect(), unknown: unknown.collect() }
    }
}

/// Returns a time with half a period before and after it.
const fn around((begin, end): Run, period: u64) -> Run {
    (begin.saturating_sub(period / 2), end.saturating_add(period / 2))
}

/// Adds a run to those before it, of which it continues the last one if only a gap shorter than one and a half periods
/// is between them.
fn add_run(runs: &mut Vec<Run>, run: Run, period: u64) {
    match runs.last_mut() {
        Some((begin, end)) if *begin <= run.0 && run.0.saturating_sub(*end) <= period + period / 2 => {
            *end = run.1.max(*end);
        }
        _ => runs.push(run),
    }
}

/// Returns the runs in ascending order, without those that continue others.
fn joined(mut runs: Vec<Run>, period: u64) -> Vec<Run> {
    runs.sort_unstable();
    let mut all = Vec::new();
    for run in runs {
        add_run(&mut all, run, period);
    }
    all
}

/// Returns the number of processors from each time on.
fn counted(mut changes: Vec<(u64, i32)>) -> Vec<(u64, u32)> {
    changes.sort_unstable();
    let mut steps: Vec<(u64, u32)> = Vec::new();
    let mut count = 0_i32;
    for (time, change) in changes {
        count += change;
        match steps.last_mut() {
            Some((last, number)) if *last == time => *number = count.cast_unsigned(),
            _ => steps.push((time, count.cast_unsigned())),
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use protocol::{ALL_EVENTS, CounterKind, CounterSample, LostRecord, Mode, SampleRecord};

    use super::*;

    fn sample(process: u32, processor: u32, time: u64) -> Record {
        let record: SampleRecord = CounterSample {
            time,
            ip: 1,
            process,
            thread: 1,
            processor,
            event: 0,
            interval: 1,
            kind: CounterKind::Sample,
            mode: Mode::User,
            pebs_sequence: 0,
            cookie: 0,
        }
        .into();
        record.parse().unwrap()
    }

    fn lost(processor: u32, time: u64) -> Record {
        SampleRecord::from(LostRecord::new(time, processor, ALL_EVENTS, 1)).parse().unwrap()
    }

    /// The records of each processor, in order.
    fn history() -> impl Strategy<Value = Vec<Vec<Record>>> {
        // Process 0 stands for a loss; most gaps are near a period of 100.
        let gap = prop_oneof![6 => 90_u64..=110, 1 => 1_u64..=400];
        let process = prop_oneof![8 => 1_u32..=3, 1 => Just(0)];
        let steps = prop::collection::vec((gap, process), 0..30);
        prop::collection::vec(steps, 1..5).prop_map(|processors| {
            let records = |(processor, steps): (u32, Vec<(u64, u32)>)| {
                let mut time = 1_000;
                let record = |(gap, process)| {
                    time += gap;
                    if process == 0 { lost(processor, time) } else { sample(process, processor, time) }
                };
                steps.into_iter().map(record).collect()
            };
            (0..).zip(processors).map(records).collect()
        })
    }

    /// Returns what [`Parallelism::at`] returns, from the definition alone.
    fn brute(history: &[Vec<Record>], period: u64, process: u32, time: u64) -> u32 {
        let half = period / 2;
        for records in history.iter().filter(|records| records.iter().any(|record| record.sample().is_some())) {
            for (index, record) in records.iter().enumerate().filter(|(_, record)| record.sample().is_none()) {
                let last = records[..index].last().unwrap_or(record).time();
                if (last - half..=record.time() + half).contains(&time) {
                    return 0;
                }
            }
        }
        let runs = |records: &&Vec<Record>| {
            let times: Vec<u64> = records
                .iter()
                .filter(|one| one.sample().is_some_and(|one| one.process == process))
                .map(Record::time)
                .collect();
            let before = times.iter().rev().find(|one| **one <= time);
            let after = times.iter().find(|one| **one >= time);
            let is_near = |one: &u64| one.abs_diff(time) <= half;
            let is_between = before.zip(after).is_some_and(|(before, after)| after - before <= period + half);
            before.is_some_and(is_near) || after.is_some_and(is_near) || is_between
        };
        u32::try_from(history.iter().filter(runs).count()).unwrap()
    }

    proptest! {
        #[test]
        fn the_parallelism_is_that_of_the_definition(history in history()) {
            let mut periods = Periods::default();
            history.iter().flatten().for_each(|record| periods.add(record));
            let chosen = periods.chosen();
            let period = chosen.values().next().map_or(0, |chosen| chosen.period);
            let mut runs = Runs { chosen, ..Runs::default() };
            history.iter().flatten().for_each(|record| runs.add(record, &Creations::default()));
            let parallelism = runs.parallelism();
            for sample in history.iter().flatten().filter_map(Record::sample) {
                let wanted = brute(&history, period, sample.process, sample.time);
                prop_assert_eq!(parallelism.at(sample.process.into(), sample.time), wanted, "{:?}", sample);
            }
        }

        #[test]
        fn a_bucket_has_its_time_in_the_middle_and_the_order_of_times(time in any::<u64>(), other in any::<u64>()) {
            let (time, other) = (time >> 1 >> (other % 63), other >> 1);
            prop_assert!(middle(bucket(time)).abs_diff(time) <= time / 64);
            prop_assert_eq!(bucket(time) < bucket(other), bucket(time) != bucket(other) && time < other);
        }
    }

    #[test]
    fn a_median_is_of_times_and_not_of_buckets() {
        let counts = |times: &[u64]| {
            let mut counts = BTreeMap::new();
            for time in times {
                *counts.entry(bucket(*time)).or_default() += 1;
            }
            counts
        };
        assert_eq!(median(&counts(&[])), 0);
        assert_eq!(median(&counts(&[10, 10, 60])), 10);
        assert_eq!(median(&counts(&[10, 20, 20, 50, 1 << 40])), 20);
    }
}
