//! Ordinary samples and precise records in one order.

use std::collections::BTreeMap;

use proptest::prelude::*;
use protocol::{Sample, SampleKind, UNKNOWN};
use recording::Block;
use report::{Filter, SymbolFinder, SymbolIndex, TimelineSample, timeline};

use super::support::{APP, CYCLES, MISSES, file, processes, read, sample};

/// Returns an ordinary sample after `pebs_sequence` records, of thread `process + 1`.
fn ordinary(process: u32, pebs_sequence: u64) -> Sample {
    Sample { pebs_sequence, ..sample(MISSES, process, APP + 0x10, 5) }
}

/// Returns the precise record with this number.
fn record(process: u32, pebs_sequence: u64) -> Sample {
    Sample { pebs_sequence, kind: SampleKind::Precise as u16, ..sample(CYCLES, process, APP + 0x20, 7) }
}

fn merge(samples: &[Sample], filter: &Filter) -> Vec<TimelineSample> {
    timeline(filter, file(&[Block::Samples(samples.to_vec())]).as_slice()).unwrap()
}

/// Returns whether each sample is precise, its mark and its process.
fn summary(samples: &[TimelineSample]) -> Vec<(bool, u64, u32)> {
    samples.iter().map(|one| (one.is_precise(), one.sample.pebs_sequence, one.sample.process)).collect()
}

#[test]
fn ordinary_sample_follows_as_many_records_as_its_mark() {
    let samples = [record(8, 0), record(8, 1), record(8, 2), ordinary(8, 0), ordinary(8, 2), ordinary(12, 2)];
    assert_eq!(
        summary(&merge(&samples, &Filter::default())),
        [(false, 0, 8), (true, 0, 8), (true, 1, 8), (false, 2, 8), (false, 2, 12), (true, 2, 8)]
    );
}

#[test]
fn process_is_inferred_only_between_samples_of_one_thread() {
    let thread = |sample: Sample, thread| Sample { thread, ..sample };
    let far = |sample: Sample| Sample { processor: 1, ..sample };
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
        let found = timeline.iter().find(|one| one.is_precise() && one.sample.pebs_sequence == 0).unwrap();
        assert_eq!((found.sample.process, found.inferred), (wanted, wanted != UNKNOWN), "{name}");
        assert_eq!(found.sample.thread, if wanted == UNKNOWN { UNKNOWN } else { wanted + 1 }, "{name}");
        assert_eq!(timeline.iter().filter(|one| one.inferred).count(), usize::from(found.inferred), "{name}");
    }
}

#[test]
fn filter_applies_after_inference_and_branches_are_omitted() {
    let branch = Sample { kind: SampleKind::Branch as u16, ..ordinary(8, 1) };
    let samples = [ordinary(8, 0), record(UNKNOWN, 0), branch, ordinary(8, 1), record(UNKNOWN, 1), ordinary(12, 2)];
    let of_cycles = Filter { source: Some(CYCLES), processes: None };
    assert_eq!(summary(&merge(&samples, &of_cycles)), [(true, 0, 8), (true, 1, UNKNOWN)]);
    let of_app = Filter { source: None, processes: Some([8].into()) };
    assert_eq!(summary(&merge(&samples, &of_app)), [(false, 0, 8), (true, 0, 8), (false, 1, 8)]);
}

#[test]
fn record_address_is_resolved_in_the_inferred_process() {
    let mut blocks: Vec<Block> = processes().into_iter().map(Block::Process).collect();
    blocks.push(Block::Samples(vec![ordinary(8, 0), record(UNKNOWN, 0), ordinary(8, 1), record(UNKNOWN, 1)]));
    let bytes = file(&blocks);
    let timeline = timeline(&Filter::default(), bytes.as_slice()).unwrap();
    let locations: Vec<_> = timeline.iter().map(TimelineSample::location).collect();
    let symbol_index = SymbolIndex::of(
        &read(&bytes).processes,
        locations.iter().copied(),
        &SymbolFinder::new(Vec::new(), None, None).unwrap(),
    );
    let names: Vec<_> = locations.iter().map(|location| symbol_index.symbol(location).into_owned()).collect();
    assert_eq!(names, ["app.exe+0x10", "app.exe+0x20", "app.exe+0x10", "0x0000000140000020"]);
}

/// Generates realistic histories: record numbers ascend, and the mark of an ordinary sample is the number of records
/// before it. Records arrive late, when they are drained.
fn history() -> impl Strategy<Value = Vec<Sample>> {
    let step = (0_u32..3, prop_oneof![Just(8_u32), Just(12), Just(UNKNOWN)], any::<bool>(), any::<bool>());
    prop::collection::vec(step, 0..60).prop_map(|steps| {
        let mut numbers = BTreeMap::new();
        let (mut now, mut late) = (Vec::new(), Vec::new());
        for (time, (processor, process, is_record, is_drained)) in (1..).zip(steps) {
            let number: &mut u64 = numbers.entry(processor).or_default();
            if is_record {
                late.push(Sample { time, processor, ..record(process, *number) });
                *number += 1;
            } else {
                now.push(Sample { time, processor, ..ordinary(if process == UNKNOWN { 4 } else { process }, *number) });
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
    fn merged_samples_appear_once_with_ascending_marks_per_processor(samples in history()) {
        let timeline = merge(&samples, &Filter::default());
        let key = |sample: &Sample| (sample.processor, sample.pebs_sequence, sample.kind, sample.time, sample.ip);
        let mut wanted: Vec<_> = samples.iter().map(key).collect();
        let mut found: Vec<_> = timeline.iter().map(|one| key(&one.sample)).collect();
        prop_assert!(found.is_sorted_by_key(|(processor, pebs_sequence, ..)| (*processor, *pebs_sequence)));
        wanted.sort_unstable();
        found.sort_unstable();
        prop_assert_eq!(found, wanted);
        for pair in timeline.windows(2).filter(|pair| pair[0].sample.processor == pair[1].sample.processor) {
            let same = pair[0].sample.pebs_sequence == pair[1].sample.pebs_sequence;
            prop_assert!(!(same && pair[0].is_precise()), "an ordinary sample comes before the record of its mark");
            prop_assert!(!same || pair[1].is_precise() || pair[0].sample.time < pair[1].sample.time);
        }
    }

    /// Compares with a search for the nearest ordinary samples that starts at each record.
    #[test]
    fn inference_matches_a_search_from_each_record(samples in history()) {
        let timeline = merge(&samples, &Filter::default());
        for (index, one) in timeline.iter().enumerate() {
            let own = samples.iter().find(|sample| {
                (sample.processor, sample.pebs_sequence, sample.kind) == (one.sample.processor, one.sample.pebs_sequence, one.sample.kind)
                    && sample.time == one.sample.time
            });
            let own = own.unwrap();
            let here = |other: &&TimelineSample| other.sample.processor == one.sample.processor;
            let before = timeline[..index].iter().rev().take_while(here).find(|other| !other.is_precise());
            let after = timeline[index..].iter().take_while(here).find(|other| !other.is_precise());
            let side = |side: Option<&TimelineSample>| side.map(|other| (other.sample.process, other.sample.thread));
            let between: Vec<&Sample> = samples.iter().filter(|sample| {
                let (low, high) = (before.map(|one| one.sample.pebs_sequence), after.map(|one| one.sample.pebs_sequence));
                sample.processor == one.sample.processor
                    && sample.kind != 0
                    && low.is_none_or(|low| sample.pebs_sequence >= low)
                    && high.is_none_or(|high| sample.pebs_sequence < high)
            }).collect();
            let agree = between.iter().all(|sample| [UNKNOWN, after.map_or(0, |one| one.sample.process)].contains(&sample.process));
            let inferred = own.process == UNKNOWN && before.is_some() && side(before) == side(after) && agree;
            prop_assert_eq!(one.inferred, inferred);
            let wanted = if inferred { side(after) } else { Some((own.process, own.thread)) };
            prop_assert_eq!(Some((one.sample.process, one.sample.thread)), wanted);
        }
    }
}
