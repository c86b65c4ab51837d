//! Events and frames in user mode that belong to no sample, or came before.

#![expect(clippy::panic, reason = "test helpers fail by panicking")]

use std::time::Duration;

use protocol::trace::{self, cookie};
use protocol::{CounterKind, CounterSample, Event, Mode, SampleRecord};
use recording::{CallStack, MissingStack, SampleStack, StackEnd};
use stacks::{CallGraph, Joiner, Limits, SampleEvent, StackItem, UserPart};

const IP: u64 = 0x1_4000_1000;
const CALLER: u64 = 0x1_4000_2000;
const CPU: u32 = 3;
const SOURCE: u64 = 2;
const PROCESS: u32 = 8;
const THREAD: u32 = 12;
const TIME: u64 = 1_000;

/// Units of the clock of samples per second, and those for which a sample waits.
const CLOCK: u64 = 1_000;
const WINDOW: u64 = 2_500;

fn sample(number: u32) -> SampleRecord {
    CounterSample {
        time: TIME,
        ip: IP,
        process: PROCESS,
        thread: THREAD,
        processor: CPU,
        event: 0,
        interval: 1,
        kind: CounterKind::Sample,
        mode: Mode::User,
        pebs_sequence: 0,
        cookie: number,
    }
    .into()
}

/// Returns the event of the samples with these numbers, the last of them at a time.
fn event([first, last]: [u32; 2], time: u64, stack: StackItem) -> SampleEvent {
    let [first, last] = [first, last].map(|number| cookie(CPU, number));
    let payload = trace::Sample {
        time,
        ip: IP,
        weight: 1,
        cookie: last,
        first,
        count: 1,
        source: SOURCE,
        extra: 0,
        cpu: CPU,
        mode: 0,
    };
    SampleEvent { payload, process: Some(PROCESS), thread: Some(THREAD), stack: Some(stack) }
}

fn whole() -> StackItem {
    StackItem { match_id: 0, frames: [IP, CALLER].into() }
}

/// Returns what becomes of the sample with this number.
fn outcome(number: u32, events: impl IntoIterator<Item = SampleEvent>) -> SampleStack {
    let mut joiner = Joiner::new(CallGraph::Both, Limits::default(), vec![Event::of(SOURCE)], CLOCK);
    joiner.records(&[sample(number)], Duration::ZERO);
    for event in events {
        joiner.event(event, Duration::ZERO);
    }
    let [(_, stack)] = &joiner.finish()[..] else { panic!("one sample") };
    stack.clone()
}

#[test]
fn a_sample_has_the_stack_of_its_own_event_only() {
    let own = SampleStack::Stack(CallStack { callers: vec![CALLER], end: StackEnd::Complete });
    let lost = SampleStack::Missing(MissingStack::EventLost);
    let right = event([5, 5], TIME, whole());
    let with = |change: fn(&mut trace::Sample)| {
        let mut event = right.clone();
        change(&mut event.payload);
        outcome(5, [event])
    };
    assert_eq!(with(|_| ()), own);
    for change in [
        |payload: &mut trace::Sample| payload.time += 1,
        |payload: &mut trace::Sample| payload.ip += 1,
        |payload: &mut trace::Sample| payload.mode = 1,
        |payload: &mut trace::Sample| payload.source += 1,
        |payload: &mut trace::Sample| payload.extra += 1,
        // The cookies of the driver have its CPU, and a number that is not 0.
        |payload: &mut trace::Sample| payload.cookie = cookie(CPU + 1, 5),
        |payload: &mut trace::Sample| payload.first = cookie(CPU + 1, 5),
        |payload: &mut trace::Sample| payload.first = cookie(CPU, 0),
    ] {
        assert_eq!(with(change), lost);
    }
}

/// Numbers repeat, so an event can cover the number of a much earlier sample.
#[test]
fn a_sample_is_merged_only_into_an_event_that_came_soon_after_it() {
    let merged = |time| outcome(5, [event([3, 9], time, whole())]);
    assert_eq!(merged(TIME + WINDOW), SampleStack::Missing(MissingStack::Merged));
    assert_eq!(merged(TIME + WINDOW + 1), SampleStack::Missing(MissingStack::EventLost));
    assert_eq!(merged(TIME - 1), SampleStack::Missing(MissingStack::EventLost));
}

#[test]
fn what_comes_twice_is_kept_once() {
    let mut joiner = Joiner::new(CallGraph::Both, Limits::default(), vec![Event::of(SOURCE)], CLOCK);
    let stack = |frames: &[u64]| StackItem { match_id: 7, frames: frames.into() };
    for _ in 0..3 {
        joiner.event(event([5, 5], TIME, stack(&[])), Duration::ZERO);
        let (process, thread) = (Some(PROCESS), Some(THREAD));
        joiner.user_part(UserPart { process, thread, time: TIME, stack: stack(&[IP, CALLER]) }, Duration::ZERO);
    }
    let held = joiner.held();
    assert_eq!((held.events, held.parts, held.frames), (1, 1, [0, 0, 2]));
    // Windows uses a MatchId again.
    joiner.user_part(
        UserPart { process: Some(PROCESS), thread: Some(THREAD), time: TIME + 1, stack: stack(&[CALLER]) },
        Duration::ZERO,
    );
    assert_eq!(joiner.held().parts, 2);
    joiner.records(&[sample(5)], Duration::ZERO);
    let own = SampleStack::Stack(CallStack { callers: vec![CALLER], end: StackEnd::Complete });
    assert_eq!(joiner.finish(), [(sample(5), own)]);
}
