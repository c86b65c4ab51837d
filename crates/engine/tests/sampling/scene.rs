//! A machine, its engine, and a client that samples.

use engine::{Engine, Interrupted};
use model::Mode;
use native_lab::{Answer, Board, Client};
use protocol::{CountRecord, EventRequest, InfoReply, ProcessorSet, Sample, SampleKind, StartHeader, modes};
use zerocopy::FromBytes;

/// Identities with each kind of counters.
pub const IDENTITIES: [&str; 4] = ["amd-legacy", "intel-v1", "intel-v2", "haswell-4710mq"];

/// Sources that all of them have.
pub const SOURCES: [u32; 3] = [2, 6, 11];

/// An interval that is soon over.
pub const SHORT: u32 = 5_000;

/// What is interrupted on a processor.
pub const fn interrupted(processor: u32) -> Interrupted {
    Interrupted { ip: 0x1000 + processor as u64, process: 100 + processor, thread: 200, modes: modes::USER }
}

pub fn engine(board: &Board) -> Engine<&Board> {
    Engine::new(board, [0; 4]).unwrap()
}

pub const fn event(source: u32, interval: u32) -> EventRequest {
    EventRequest { source, modes: modes::BOTH, interval, frequency: 0 }
}

pub fn on(processors: &[u32]) -> ProcessorSet {
    let mut set = ProcessorSet::EMPTY;
    assert!(processors.iter().all(|processor| set.insert(*processor)));
    set
}

pub const fn header(ring: u32, processors: ProcessorSet) -> StartHeader {
    StartHeader { flags: 0, ring, budget: 900, batch: 0, processors }
}

/// Starts events with these intervals, and answers the session.
pub fn started(
    client: Client,
    engine: &mut Engine<&Board>,
    ring: u32,
    processors: ProcessorSet,
    events: &[EventRequest],
) -> u64 {
    let answer = client.start_with(engine, header(ring, processors), events).header();
    assert_eq!((answer.status, answer.cause), (0, 0));
    let [session, clock] = answer.detail;
    assert_eq!(clock, 10_000_000);
    session
}

/// The processor executes so many of every event, and serves what that raises.
pub fn run(board: &Board, engine: &Engine<&Board>, processor: u32, count: u64) {
    board.run(processor, Mode::User, &|_| count);
    board.deliver(engine, processor, &interrupted(processor));
}

/// All records that there are, and whether they were the last.
pub fn fetched(client: Client, engine: &mut Engine<&Board>, session: u64) -> (Vec<Sample>, bool) {
    let answer = client.samples(engine, session, None, 100_000).unwrap();
    let header = answer.header();
    assert_eq!((header.status, header.cause), (0, 0));
    (answer.records(), header.detail[0] == 1)
}

pub fn stopped(client: Client, engine: &mut Engine<&Board>, session: u64, source: Option<u32>) -> Vec<CountRecord> {
    let answer: Answer = client.stop(engine, session, source);
    assert_eq!(answer.header().status, 0);
    answer.records()
}

pub fn info(client: Client, engine: &mut Engine<&Board>) -> InfoReply {
    let answer = client.ask(engine, protocol::Code::Info, &[], size_of::<InfoReply>());
    InfoReply::read_from_bytes(&answer.bytes).unwrap()
}

pub const fn is_sample(record: &Sample) -> bool {
    record.kind == SampleKind::Sample as u16
}

/// Overflows that the model raised of an event on a processor, by its own account: event select and unit mask.
pub fn overflows(board: &Board, processor: u32, source: u32) -> u64 {
    let name = board.processor(processor).model().cpuid(0, 0)[1];
    let intel = name.to_le_bytes() == *b"Genu";
    let (event, umask) = match (source, intel) {
        (2, _) => (0xC0, 0),
        (6, true) => (0xC4, 0),
        (6, false) => (0xC2, 0),
        (11, true) => (0xC5, 0),
        (11, false) => (0xC3, 0),
        _ => unreachable!("a source of SOURCES"),
    };
    let model = board.processor(processor).model();
    let of = |entry: &model::LedgerEntry| (entry.selected.event, entry.selected.umask) == (event, umask);
    model.ledger().entries().filter(of).map(|entry| entry.overflows).sum()
}

/// Nothing counts, and the interrupt is the HAL's.
pub fn is_left_clean(board: &Board) -> bool {
    !board.is_sampling() && board.all().all(|cpu| cpu.model().enabled_counters().is_empty())
}
