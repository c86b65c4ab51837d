//! The samples of a session with their stacks, against a model that knows what it has sampled.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bench_protocol::{Disorder, HalScript, SampleLedger};
use etw_model::{DeliveredEvent, Delivery, SwitchModel};
use proptest::prelude::*;
use protocol::{Event, Record, SampleRecord};
use recording::{MissingStack, SampleStack, StackEnd};
use stacks::{CallGraph, Joiner, Limits};

use super::samples::Samples;
use super::tests::{WINDOW, threads, with_raw};
use crate::trace::{Meaning, TraceSink, interpret};

const SOURCES: [(u32, u32); 2] = [(2, 20_000), (19, 50_000)];

/// What the number of a requested event is more than that of its source in the HAL.
const EVENT: u64 = 1 << 40;

/// A session over 250 ms of the model.
struct Run {
    samples: Samples,
    /// The samples with their stacks.
    joined: Vec<(SampleRecord, SampleStack)>,
    ledger: Vec<SampleLedger>,
}

fn run(script: &HalScript, disorder: Disorder, with_stacks: bool, room: usize) -> Run {
    let mut model = SwitchModel::sampling(script, SOURCES.to_vec(), with_stacks, 1_000);
    let mut delivery = Delivery::new(disorder);
    let sources = SOURCES.map(|(source, interval)| (source, EVENT + u64::from(source), interval));
    let mut samples = Samples::new(&sources, WINDOW, room);
    let requested = sources.map(|(_, event, _)| Event::of(event)).to_vec();
    let joiner = Arc::new(Mutex::new(Joiner::new(CallGraph::Both, Limits::default(), requested, 10_000_000)));
    let receiver = Arc::clone(&joiner);
    let mut sink: TraceSink = Box::new(move |event| {
        interpret(event, |meaning| {
            if let Meaning::Sample(event) = meaning {
                receiver.lock().unwrap().event(event, Duration::ZERO);
            }
        });
    });
    let add = |event: &DeliveredEvent, samples: &mut Samples, sink: &mut TraceSink| {
        with_raw(event, |raw| samples.add(raw, Some(sink)));
    };
    for millisecond in 0..250 {
        let now = Duration::from_millis(millisecond);
        for event in model.run_until(1_000 + millisecond * 10_000, &threads(millisecond)) {
            delivery.add_of_kernel(event, now);
        }
        while let Some(event) = delivery.next(now) {
            add(&event, &mut samples, &mut sink);
        }
    }
    delivery.finish().iter().for_each(|event| add(event, &mut samples, &mut sink));
    samples.finish(Some(&mut sink));
    let mut joiner = joiner.lock().unwrap();
    joiner.records(samples.ready.make_contiguous(), Duration::ZERO);
    Run { samples, joined: joiner.finish(), ledger: model.ledger().samples }
}

/// Sums samples by process, source and address, and checks that each stack is that of its address.
fn summed(joined: &[(SampleRecord, SampleStack)], ledger: &[SampleLedger]) -> Vec<SampleLedger> {
    let mut sums: BTreeMap<(u32, u32, u64), SampleLedger> = BTreeMap::new();
    for (record, stack) in joined {
        let Ok(Record::Sample(sample)) = record.parse() else { panic!("{record:?}") };
        let (source, _) = SOURCES[sample.event as usize];
        let truth = ledger.iter().find(|one| (one.source, one.ip) == (source, sample.ip)).unwrap();
        let sum = sums.entry((sample.process, source, sample.ip)).or_default();
        (sum.process, sum.source, sum.ip, sum.callers) = (sample.process, source, sample.ip, truth.callers.clone());
        sum.samples += 1;
        sum.events += u64::from(sample.interval);
        match stack {
            SampleStack::Stack(stack) if stack.end == StackEnd::Complete => assert_eq!(stack.callers, truth.callers),
            SampleStack::Stack(stack) => assert!(truth.callers.starts_with(&stack.callers), "{stack:?}"),
            SampleStack::Missing(MissingStack::EventLost | MissingStack::UserLost) => sum.stackless += 1,
            other => panic!("{other:?}"),
        }
    }
    sums.into_values().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn without_losses_every_sample_has_its_process_weight_and_stack(
        (seed, processors, stackless, foreign) in (0..1_000_u64, 1..5_u32, 0..30_u32, 0..30_u32),
        (delay, shuffle, duplicates, changed_after) in (0..200_u64, 0..40_u32, 0..20_u32, 0..400_u64),
    ) {
        let script = HalScript { seed, processors, stackless, foreign, changed_after, ..HalScript::default() };
        let disorder = Disorder { seed, delay, shuffle, duplicates, ..Disorder::default() };
        let Run { samples, joined, ledger } = run(&script, disorder, true, usize::MAX);
        let weights = |sums: &[SampleLedger]| sums.iter().map(|one| one.events).sum::<u64>();
        let without_weights = |sums: &[SampleLedger]| -> Vec<_> {
            sums.iter().map(|one| SampleLedger { events: 0, ..one.clone() }).collect()
        };
        let sums = summed(&joined, &ledger);
        prop_assert_eq!(without_weights(&sums), without_weights(&ledger));
        // Counters that run when the interval is changed have been loaded with the one before.
        let of_change = if changed_after == 0 { 0 } else { 8 * u64::from(processors * SOURCES[0].1) };
        prop_assert!(weights(&sums).abs_diff(weights(&ledger)) <= of_change);
        prop_assert!(ledger.iter().any(|one| one.process == 200) && ledger.len() > 20);
        prop_assert_eq!(samples.late, 0);
        prop_assert!((1..5).contains(&foreign) || (samples.foreign > 0) == (foreign > 0));
        let counted: u64 = samples.accounts.values().map(|account| account.count).sum();
        prop_assert_eq!(counted, weights(&sums));
        prop_assert!(changed_after == 0 || samples.interval(0, u64::MAX) == 2 * SOURCES[0].1);
    }

    #[test]
    fn with_losses_no_sample_is_invented(
        (seed, lost_events, lost_buffers) in (0..1_000_u64, 0..10_u32, 0..10_u32),
        (duplicates, delay, shuffle) in (0..10_u32, 0..100_u64, 0..40_u32),
    ) {
        let script = HalScript { seed, processors: 2, ..HalScript::default() };
        let disorder = Disorder { seed, lost_events, lost_buffers, duplicates, delay, shuffle, ..Disorder::default() };
        let Run { joined, ledger, .. } = run(&script, disorder, true, usize::MAX);
        for sum in summed(&joined, &ledger) {
            let of_all = ledger.iter().filter(|one| (one.source, one.ip) == (sum.source, sum.ip));
            prop_assert!(sum.samples <= of_all.map(|one| one.samples).sum());
        }
    }
}

#[test]
fn samples_without_room_are_counted_as_lost_and_cpus_without_samples_have_no_account() {
    let script = HalScript { processors: 3, still: vec![1], ..HalScript::default() };
    let Run { samples, joined, ledger } = run(&script, Disorder::default(), false, 100);
    assert_eq!(joined.len(), 100);
    let full: u64 = samples.accounts.values().map(|account| account.full).sum();
    assert_eq!(100 + full, ledger.iter().map(|one| one.samples).sum::<u64>());
    assert!(samples.accounts.keys().all(|(_, cpu)| *cpu != 1) && samples.accounts.len() == 4);
}
