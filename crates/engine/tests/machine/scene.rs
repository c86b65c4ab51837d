//! Helpers for a machine, its engine and requests to it.

use engine::{Engine, Interrupted};
use model::Mode;
use protocol::{Event, EventRequest, ProcessorSet, Record, RecordKind, StartHeader};
use simulation::{Client, SimMachine};

/// Identities with each kind of counters.
pub const IDENTITIES: [&str; 4] = ["amd-legacy", "intel-v1", "intel-v2", "haswell-4710mq"];

/// The shortest interval.
pub const SHORT: u32 = 4_096;

pub fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

pub fn on(processors: &[u32]) -> ProcessorSet {
    let mut set = ProcessorSet::EMPTY;
    assert!(processors.iter().all(|processor| set.insert(*processor)));
    set
}

/// Returns an event that is counted, or sampled with an interval.
pub const fn event(source: u64, interval: u32) -> EventRequest {
    EventRequest { event: Event::of(source), modes: simulation::quiet_modes(source), interval, ..EventRequest::EMPTY }
}

/// Returns the header of a session with these flags, with rings for samples.
pub const fn header(flags: u32, samples: bool, processors: ProcessorSet) -> StartHeader {
    StartHeader { flags, ring: if samples { 64 } else { 0 }, processors, ..StartHeader::EMPTY }
}

/// Starts events and returns the session.
pub fn started(
    client: Client,
    engine: &mut Engine<&SimMachine>,
    processors: ProcessorSet,
    events: &[EventRequest],
) -> u64 {
    let samples = events.iter().any(|event| event.interval > 0);
    let answer = client.start_with(engine, header(0, samples, processors), events).header();
    assert_eq!((answer.status, answer.cause), (0, 0));
    answer.detail[0]
}

/// The interrupted code, which does not matter here.
pub const NOWHERE: Interrupted = Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };

/// Makes `count` of every event occur on the processor and delivers the interrupts.
pub fn run(machine: &SimMachine, engine: &Engine<&SimMachine>, processor: u32, count: u64) {
    machine.run(processor, Mode::User, &|_| count);
    machine.deliver(engine, processor, &NOWHERE);
}

/// Fetches all records and returns those of one kind: the processor, and the address of a sample or the duration of a
/// pause.
pub fn records(client: Client, engine: &mut Engine<&SimMachine>, session: u64, kind: RecordKind) -> Vec<(u32, u64)> {
    let answer = client.samples(engine, session, None, 100_000).unwrap();
    let value = |record: &Record| match record {
        Record::Sample(sample) => sample.ip,
        Record::Pause(pause) => pause.duration,
        other => unreachable!("{other:?}"),
    };
    answer
        .try_samples()
        .unwrap()
        .iter()
        .filter(|one| one.kind() == kind)
        .map(|one| (one.processor(), value(one)))
        .collect()
}
