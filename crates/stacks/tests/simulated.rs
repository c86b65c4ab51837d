//! The joiner with a simulated driver and a simulated Event Tracing for Windows, of which the truth is known.

#![cfg(test)]

mod etw;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use protocol::{Record, SampleRecord};
use recording::{CallStack, MissingStack, SampleStack, StackEnd};
use stacks::{CallGraph, Held, Joiner, Limits};

use self::etw::{Arrival, CLOCK, EVENTS, Input, Interrupt, World, interrupts};

type Joined = Vec<(SampleRecord, SampleStack)>;

/// Passes everything to a joiner in the order of arrival. Returns what it returns, and what it held at most.
fn run(joiner: &mut Joiner, arrivals: &[Arrival]) -> (Joined, Held) {
    let mut returned = Vec::new();
    let mut most = joiner.held();
    for Arrival { at, input } in arrivals {
        let now = Duration::from_millis(*at);
        match input {
            Input::Records(records) => joiner.records(records, now),
            Input::Event(event) => joiner.event(event.clone(), now),
            Input::Part(part) => joiner.user_part(part.clone(), now),
        }
        returned.extend(joiner.take(now));
        let held = joiner.held();
        most.samples = most.samples.max(held.samples);
        most.branches = most.branches.max(held.branches);
        most.events = most.events.max(held.events);
        most.parts = most.parts.max(held.parts);
        for (most, held) in most.frames.iter_mut().zip(held.frames) {
            *most = (*most).max(held);
        }
    }
    returned.extend(joiner.finish());
    (returned, most)
}

fn by_cpu(records: impl IntoIterator<Item = SampleRecord>) -> BTreeMap<u32, Vec<SampleRecord>> {
    let mut by_cpu = BTreeMap::<u32, Vec<SampleRecord>>::new();
    for record in records {
        let cpu = record.parse().map_or(u32::MAX, |record| record.processor());
        by_cpu.entry(cpu).or_default().push(record);
    }
    by_cpu
}

/// Every record is returned once, those of each CPU are in the order of the rings, and last branches are directly
/// behind their sample.
fn check_order(world: &World, joined: &Joined) -> Result<(), TestCaseError> {
    let put = by_cpu(world.arrivals.iter().filter_map(Arrival::records).flatten().copied());
    prop_assert_eq!(by_cpu(joined.iter().map(|(record, _)| *record)), put);
    let mut sample = None;
    for record in joined.iter().filter_map(|(record, _)| record.parse().ok()) {
        match record {
            Record::LastBranch(branch) => {
                prop_assert_eq!(Some((branch.processor, branch.event, branch.time)), sample);
            }
            _ => sample = Some((record.processor(), record.event(), record.time())),
        }
    }
    Ok(())
}

/// Every sample has the stack that it must have, given what was lost.
fn check_stacks(world: &World, joined: &Joined) -> Result<(), TestCaseError> {
    for (record, stack) in joined {
        match record.parse() {
            Ok(Record::Sample(sample)) => {
                let wanted = &world.truth[&(sample.processor, sample.event, sample.time)];
                prop_assert_eq!(stack, wanted, "{:?}", sample);
            }
            Ok(Record::Precise(_)) => prop_assert_eq!(stack, &SampleStack::Missing(MissingStack::Precise)),
            _ => prop_assert_eq!(stack, &SampleStack::NotRecorded),
        }
    }
    Ok(())
}

fn graphs() -> impl Strategy<Value = CallGraph> {
    prop_oneof![Just(CallGraph::Both), Just(CallGraph::Kernel), Just(CallGraph::User)]
}

/// Returns whether a stack is a part of the true one: it ends earlier and says so.
fn is_part(stack: &SampleStack, truth: &SampleStack) -> bool {
    match (stack, truth) {
        (SampleStack::Missing(_), _) => true,
        (SampleStack::Stack(CallStack { callers, end: StackEnd::UserLost }), SampleStack::Stack(truth)) => {
            truth.callers.starts_with(callers)
        }
        _ => stack == truth,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 600 } else { 6_000 }))]

    #[test]
    fn without_losses_every_sample_has_its_true_stack(
        interrupts in prop::collection::vec(interrupts(false), 1..120),
        graph in graphs(),
        first in prop_oneof![Just(1_u32), Just(u32::MAX - 20)],
    ) {
        let world = World::new(&interrupts, graph, first);
        let (joined, _) = run(&mut Joiner::new(graph, Limits::default(), EVENTS.to_vec(), CLOCK), &world.arrivals);
        check_order(&world, &joined)?;
        check_stacks(&world, &joined)?;
        let are_lost = |stack: &SampleStack| matches!(stack,
            SampleStack::Missing(MissingStack::EventLost | MissingStack::UserLost | MissingStack::Overflow)
            | SampleStack::Stack(CallStack { end: StackEnd::UserLost, .. }));
        prop_assert!(!joined.iter().any(|(_, stack)| are_lost(stack)));
    }

    #[test]
    fn every_sample_has_one_outcome_and_the_reason_of_its_loss(
        interrupts in prop::collection::vec(interrupts(true), 1..120),
        graph in graphs(),
        first in prop_oneof![Just(1_u32), Just(u32::MAX - 20)],
    ) {
        let world = World::new(&interrupts, graph, first);
        let mut joiner = Joiner::new(graph, Limits::default(), EVENTS.to_vec(), CLOCK);
        let (joined, _) = run(&mut joiner, &world.arrivals);
        check_order(&world, &joined)?;
        check_stacks(&world, &joined)?;
        let samples = joined.iter().filter(|(_, stack)| *stack != SampleStack::NotRecorded).count();
        prop_assert_eq!(joiner.counts().samples(), samples as u64);
    }

    #[test]
    fn limits_are_kept_and_no_stack_is_wrong(
        mut interrupts in prop::collection::vec(interrupts(true), 1..150),
        graph in graphs(),
        samples in 1_usize..20,
        branches in 1_usize..100,
        entries in 1_usize..20,
        frames in 1_usize..600,
    ) {
        for interrupt in &mut interrupts {
            interrupt.loses_user = true;
            interrupt.gap /= 50;
        }
        let truth = interrupts.iter().map(Interrupt::without_losses).collect::<Vec<_>>();
        let truth = World::new(&truth, graph, 1).truth;
        let world = World::new(&interrupts, graph, 1);
        let limits = Limits { samples, branches, events: entries, parts: entries, frames, ..Limits::default() };
        let (joined, most) = run(&mut Joiner::new(graph, limits, EVENTS.to_vec(), CLOCK), &world.arrivals);
        check_order(&world, &joined)?;
        for (record, stack) in &joined {
            if let Ok(Record::Sample(sample)) = record.parse() {
                let truth = &truth[&(sample.processor, sample.event, sample.time)];
                prop_assert!(is_part(stack, truth), "{:?}: {:?} is not {:?}", sample, stack, truth);
            }
        }
        prop_assert!(most.samples <= samples && most.branches <= branches, "{:?}", most);
        prop_assert!(most.events <= entries && most.parts <= entries, "{:?}", most);
        prop_assert!(most.frames.iter().all(|held| *held <= frames), "{:?}", most);
    }
}

#[test]
fn the_simulation_reaches_every_outcome() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let mut runner = TestRunner::deterministic();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..200 {
        let vector = prop::collection::vec(interrupts(true), 1..120);
        let interrupts = vector.new_tree(&mut runner).unwrap().current();
        let world = World::new(&interrupts, CallGraph::Both, 1);
        seen.extend(world.truth.into_values().map(|stack| match stack {
            SampleStack::NotRecorded => "not recorded".to_owned(),
            SampleStack::Missing(reason) => format!("{reason:?}"),
            SampleStack::Stack(stack) => format!("stack {:?}", stack.end),
        }));
    }
    let mut seen: Vec<String> = seen.into_iter().collect();
    seen.sort();
    let wanted = ["EventLost", "Merged", "TakenElsewhere", "Untraced", "UserLost"];
    let stacks = ["stack Complete", "stack Truncated", "stack UserLost"];
    assert_eq!(seen, [&wanted[..], &stacks].concat());
}
