//! Ordinary samples and precise records in one order.

use std::collections::BTreeMap;
use std::io::Cursor;

use proptest::prelude::*;
use protocol::{CounterSample, PreciseKind, Prediction, SampleRecord, UNKNOWN};
use recording::Block;
use report::{Filter, SymbolFinder, SymbolIndex, TimelineSample, timeline};

use super::support::{APP, CYCLES, MISSES, branch, file, precise, processes, read, sample};

/// A sample of a history.
#[derive(Debug, Clone, Copy)]
struct Step {
    /// A precise record, or an ordinary sample.
    is_precise: bool,
    /// Number of the precise record, or of the records before the ordinary sample.
    number: u64,
    time: u64,
    process: u32,
    thread: u32,
    processor: u32,
}

impl Step {
    fn record(self) -> SampleRecord {
        let Self { is_precise, number, time, process, thread, processor } = self;
        let of = |source, ip, interval| CounterSample {
            time,
            thread,
            processor,
            pebs_sequence: u32::try_from(number).unwrap(),
            ..sample(source, process, ip, interval)
        };
        if is_precise {
            precise(PreciseKind::Precise, number, of(CYCLES, APP + 0x20, 7)).into()
        } else {
            of(MISSES, APP + 0x10, 5).into()
        }
    }
}

/// Returns an ordinary sample after `number` records, of thread `process + 1`.
fn ordinary(process: u32, number: u64) -> Step {
    let thread = if process == UNKNOWN { UNKNOWN } else { process + 1 };
    Step { is_precise: false, number, time: 1000, process, thread, processor: 0 }
}

/// Returns the precise record with this number.
fn record(process: u32, number: u64) -> Step {
    Step { is_precise: true, ..ordinary(process, number) }
}

fn block(steps: &[Step]) -> Block {
    Block::Samples(steps.iter().map(|step| step.record()).collect())
}

fn merge(steps: &[Step], filter: &Filter) -> Vec<TimelineSample> {
    let bytes = file(&[block(steps)]);
    timeline(&read(&bytes), filter, &mut Cursor::new(&bytes)).unwrap()
}

/// Returns whether each sample is precise, its number and its process.
fn summary(samples: &[TimelineSample]) -> Vec<(bool, u64, u32)> {
    samples.iter().map(|one| (one.is_precise(), one.pebs_sequence, one.sample.process)).collect()
}

#[test]
fn ordinary_sample_follows_as_many_records_as_it_says() {
    let samples = [record(8, 0), record(8, 1), record(8, 2), ordinary(8, 0), ordinary(8, 2), ordinary(12, 2)];
    assert_eq!(
        summary(&merge(&samples, &Filter::default())),
        [(false, 0, 8), (true, 0, 8), (true, 1, 8), (false, 2, 8), (false, 2, 12), (true, 2, 8)]
    );
}

#[test]
fn process_is_inferred_only_between_samples_of_one_thread() {
    let thread = |step: Step, thread| Step { thread, ..step };
    let far = |step: Step| Step { processor: 1, ..step };
    for (name, samples, wanted) in [
        ("both of one thread", vec![ordinary(8, 0), ordinary(8, 2)], 8),
        ("another process after it", vec![ordinary(8, 0), ordinary(12, 2)], UNKNOWN),
        ("another thread after it", vec![ordinary(8, 0), thread(ordinary(8, 2), 99)], UNKNOWN),
        ("nothing after it", vec![ordinary(8, 0), ordinary(8, 0)], UNKNOWN),
        ("nothing before it", vec![ordinary(8, 2), ordinary(8, 2)], UNKNOWN),
        ("another processor before it", vec![far(ordinary(8, 0)), ordinary(8, 2)], UNKNOWN),
        (
            "a sample of an unknown process after it",
            vec![ordinary(8, 0), ordinary(UNKNOWN, 1), ordinary(8, 2)],
            UNKNOWN,
        ),
        ("another process between the two", vec![ordinary(8, 0), record(12, 1), ordinary(8, 2)], UNKNOWN),
        ("another thread between the two", vec![ordinary(8, 0), thread(record(8, 1), 99), ordinary(8, 2)], UNKNOWN),
        ("the same thread between the two", vec![ordinary(8, 0), record(8, 1), ordinary(8, 2)], 8),
    ] {
        let timeline = merge(&[&samples[..], &[record(UNKNOWN, 0)]].concat(), &Filter::default());
        let found = timeline.iter().find(|one| one.is_precise() && one.pebs_sequence == 0).unwrap();
        assert_eq!((found.sample.process, found.inferred), (wanted, wanted != UNKNOWN), "{name}");
        assert_eq!(found.sample.thread, if wanted == UNKNOWN { UNKNOWN } else { wanted + 1 }, "{name}");
        assert_eq!(timeline.iter().filter(|one| one.inferred).count(), usize::from(found.inferred), "{name}");
    }
}

#[test]
fn filter_applies_after_inference_and_branches_are_omitted() {
    let steps = [ordinary(8, 0), record(UNKNOWN, 0), ordinary(8, 1), record(UNKNOWN, 1), ordinary(12, 2)];
    let mut records: Vec<SampleRecord> = steps.map(Step::record).into();
    records.insert(2, branch(8, APP, APP + 0x10, Prediction::NotReported).into());
    let bytes = file(&[Block::Samples(records)]);
    let merge = |filter| timeline(&read(&bytes), filter, &mut Cursor::new(&bytes)).unwrap();
    let of_cycles = Filter { events: Some([CYCLES].into()), ..Filter::default() };
    assert_eq!(summary(&merge(&of_cycles)), [(true, 0, 8), (true, 1, UNKNOWN)]);
    let of_app = Filter { processes: Some([8.into()].into()), ..Filter::default() };
    assert_eq!(summary(&merge(&of_app)), [(false, 0, 8), (true, 0, 8), (false, 1, 8)]);
}

#[test]
fn record_address_is_resolved_in_the_inferred_process() {
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.push(block(&[ordinary(8, 0), record(UNKNOWN, 0), ordinary(8, 1), record(UNKNOWN, 1)]));
    let bytes = file(&blocks);
    let contents = read(&bytes);
    let timeline = timeline(&contents, &Filter::default(), &mut Cursor::new(&bytes)).unwrap();
    let locations: Vec<_> = timeline.iter().map(|one| one.location(&contents.processes)).collect();
    let symbol_index = SymbolIndex::of(
        &read(&bytes).processes,
        locations.iter().copied(),
        &SymbolFinder::new(Vec::new(), None, None).unwrap(),
    );
    let names: Vec<_> = locations.iter().map(|location| symbol_index.symbol(location).into_owned()).collect();
    assert_eq!(names, ["app.exe+0x10", "app.exe+0x20", "app.exe+0x10", "0x0000000140000020"]);
}

/// Generates realistic histories: record numbers ascend, and an ordinary sample has the number of records before it.
/// Records arrive late, when they are drained.
fn history() -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u32..3, prop_oneof![Just(8_u32), Just(12), Just(UNKNOWN)], any::<bool>(), any::<bool>());
    prop::collection::vec(step, 0..60).prop_map(|steps| {
        let mut numbers = BTreeMap::new();
        let (mut now, mut late) = (Vec::new(), Vec::new());
        for (time, (processor, process, is_record, is_drained)) in (1..).zip(steps) {
            let number: &mut u64 = numbers.entry(processor).or_default();
            if is_record {
                late.push(Step { time, processor, ..record(process, *number) });
                *number += 1;
            } else {
                let process = if process == UNKNOWN { 4 } else { process };
                now.push(Step { time, processor, ..ordinary(process, *number) });
            }
            if is_drained {
                now.append(&mut late);
            }
        }
        now.append(&mut late);
        now
    })
}

proptest! {
    #[test]
    fn merged_samples_appear_once_with_ascending_numbers_per_processor(samples in history()) {
        let timeline = merge(&samples, &Filter::default());
        let key = |step: &Step| (step.processor, step.number, step.is_precise, step.time);
        let mut wanted: Vec<_> = samples.iter().map(key).collect();
        let found = timeline.iter().map(|one| (one.sample.processor, one.pebs_sequence, one.is_precise(), one.sample.time));
        let mut found: Vec<_> = found.collect();
        prop_assert!(found.is_sorted_by_key(|(processor, pebs_sequence, ..)| (*processor, *pebs_sequence)));
        wanted.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, wanted);
        for pair in timeline.windows(2).filter(|pair| pair[0].sample.processor == pair[1].sample.processor) {
            let same = pair[0].pebs_sequence == pair[1].pebs_sequence;
            prop_assert!(!(same && pair[0].is_precise()), "an ordinary sample comes before the record of its number");
            prop_assert!(!same || pair[1].is_precise() || pair[0].sample.time < pair[1].sample.time);
        }
    }

    /// Compares with a search for the nearest ordinary samples that starts at each record.
    #[test]
    fn inference_matches_a_search_from_each_record(samples in history()) {
        let timeline = merge(&samples, &Filter::default());
        for (index, one) in timeline.iter().enumerate() {
            let own = samples.iter().find(|sample| {
                (sample.processor, sample.number, sample.is_precise) == (one.sample.processor, one.pebs_sequence, one.is_precise())
                    && sample.time == one.sample.time
            });
            let own = own.unwrap();
            let here = |other: &&TimelineSample| other.sample.processor == one.sample.processor;
            let before = timeline[..index].iter().rev().take_while(here).find(|other| !other.is_precise());
            let after = timeline[index..].iter().take_while(here).find(|other| !other.is_precise());
            let side = |side: Option<&TimelineSample>| side.map(|other| (other.sample.process, other.sample.thread));
            let between: Vec<&Step> = samples.iter().filter(|sample| {
                let (low, high) = (before.map(|one| one.pebs_sequence), after.map(|one| one.pebs_sequence));
                sample.processor == one.sample.processor
                    && sample.is_precise
                    && low.is_none_or(|low| sample.number >= low)
                    && high.is_none_or(|high| sample.number < high)
            }).collect();
            let agree = between.iter().all(|sample| [UNKNOWN, after.map_or(0, |one| one.sample.process)].contains(&sample.process));
            let inferred = own.process == UNKNOWN && before.is_some() && side(before) == side(after) && agree;
            prop_assert_eq!(one.inferred, inferred);
            let wanted = if inferred { side(after) } else { Some((own.process, own.thread)) };
            prop_assert_eq!(Some((one.sample.process, one.sample.thread)), wanted);
        }
    }
}
