//! Helpers for a machine, its engine and a sampling client.

use engine::{Engine, Interrupted};
use model::{InterruptMode, Mode};
use protocol::{CountRecord, Event, EventRequest, InfoReply, ProcessorSet, Record, StartHeader, event_flags, modes};
use simulation::{Answer, Client, SimMachine};
use zerocopy::FromBytes;

/// Identities for each kind of counters with interrupts.
pub const IDENTITIES: [&str; 12] = [
    "amd-legacy",
    "zen-1800x", // six counters, no global registers
    "zen4-7700x",
    "intel-v1",
    "intel-v2",
    "haswell-4710mq",
    "skylake-6600k",
    "sapphire-rapids-2475x", // version 5
    "intel-hybrid",          // processors with odd numbers are E cores with other counters
    "lunar-lake-288v",       // version 6, ten counters by leaf 23H
    "netburst-cedarmill",
    "p6-coppermine",
];

/// Returns a machine with `count` processors of an identity and this interrupt mode.
pub fn machine(name: &str, count: u32, mode: InterruptMode) -> SimMachine {
    SimMachine::named(name, count).with_interrupt_mode(mode)
}

/// Returns such a machine for each interrupt mode.
pub fn boards(name: &str, count: u32) -> impl Iterator<Item = SimMachine> {
    InterruptMode::ALL.into_iter().map(move |mode| machine(name, count, mode))
}

/// Returns a machine of every identity in each interrupt mode, and its name for messages.
pub fn machines(count: u32) -> impl Iterator<Item = (String, SimMachine)> {
    let each = IDENTITIES.into_iter().flat_map(|name| InterruptMode::ALL.map(|mode| (name, mode)));
    each.map(move |(name, mode)| (format!("{name}, {mode:?}"), machine(name, count, mode)))
}

/// Sources that all identities have.
pub const SOURCES: [u64; 3] = [2, 6, 11];

/// An interval that expires soon.
pub const SHORT: u32 = 5_000;

/// Returns the interrupted code on a processor.
pub const fn interrupted(processor: u32) -> Interrupted {
    Interrupted { ip: 0x1000 + processor as u64, process: 100 + processor, thread: 200, mode: protocol::Mode::User }
}

pub fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

/// Returns an event in user mode. In kernel mode it would count what occurs between the accesses of the driver as well.
pub const fn event(source: u64, interval: u32) -> EventRequest {
    EventRequest { event: Event::of(source), modes: simulation::quiet_modes(source), interval, ..EventRequest::EMPTY }
}

/// Returns an event, the count of which misses nothing.
pub const fn counted(source: u64, interval: u32) -> EventRequest {
    EventRequest { flags: event_flags::COUNTED, ..event(source, interval) }
}

/// Returns an event in both modes, the count of which is that of the ledger.
pub const fn event_in_both_modes(source: u64, interval: u32) -> EventRequest {
    EventRequest { modes: modes::BOTH, ..counted(source, interval) }
}

pub fn on(processors: &[u32]) -> ProcessorSet {
    let mut set = ProcessorSet::EMPTY;
    assert!(processors.iter().all(|processor| set.insert(*processor)));
    set
}

pub const fn header(ring: u32, processors: ProcessorSet) -> StartHeader {
    StartHeader { ring, budget: 900, processors, ..StartHeader::EMPTY }
}

/// Starts events with these intervals and returns the session.
pub fn started(
    client: Client,
    engine: &mut Engine<&SimMachine>,
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

/// Makes `count` of every event occur on the processor and delivers the interrupts.
pub fn run(machine: &SimMachine, engine: &Engine<&SimMachine>, processor: u32, count: u64) {
    machine.run(processor, Mode::User, &|_| count);
    machine.deliver(engine, processor, &interrupted(processor));
}

/// Fetches all records, and returns whether they were the last.
pub fn fetched(client: Client, engine: &mut Engine<&SimMachine>, session: u64) -> (Vec<Record>, bool) {
    let answer = client.samples(engine, session, None, 100_000).unwrap();
    let header = answer.header();
    assert_eq!((header.status, header.cause), (0, 0));
    (answer.try_samples().unwrap(), header.detail[0] == 1)
}

pub fn stopped(
    client: Client,
    engine: &mut Engine<&SimMachine>,
    session: u64,
    source: Option<u64>,
) -> Vec<CountRecord> {
    let answer: Answer = client.stop(engine, session, source);
    assert_eq!(answer.header().status, 0);
    answer.records()
}

pub fn info(client: Client, engine: &mut Engine<&SimMachine>) -> InfoReply {
    let answer = client.ask(engine, protocol::Code::Info, &[], size_of::<InfoReply>());
    InfoReply::read_from_bytes(&answer.bytes).unwrap()
}

pub const fn is_sample(record: &Record) -> bool {
    matches!(record, Record::Sample(_))
}

/// Returns event select and unit mask of a source on a processor, by the manuals.
pub fn encoding(machine: &SimMachine, processor: u32, source: u64) -> (u16, u16) {
    let [_, vendor, ..] = machine.processor(processor).model().cpuid(0, 0);
    let [signature, ..] = machine.processor(processor).model().cpuid(1, 0);
    let is_intel = vendor.to_le_bytes() == *b"Genu";
    let is_netburst = is_intel && signature >> 8 & 0xF == 0xF;
    match source {
        2 if is_netburst => (0x02, 0x01),
        6 if is_netburst => (0x06, 0x0F),
        11 if is_netburst => (0x03, 0x01),
        2 => (0xC0, 0),
        6 if is_intel => (0xC4, 0),
        6 => (0xC2, 0),
        11 if is_intel => (0xC5, 0),
        11 => (0xC3, 0),
        _ => unreachable!("a source of SOURCES"),
    }
}

/// Returns the overflows of an event on a processor in the model's ledger.
pub fn overflows(machine: &SimMachine, processor: u32, source: u64) -> u64 {
    let (event, umask) = encoding(machine, processor, source);
    let model = machine.processor(processor).model();
    let of = |entry: &model::LedgerEntry| (entry.selected.event, entry.selected.umask) == (event, umask);
    model.ledger().entries().filter(of).map(|entry| entry.overflows).sum()
}

/// Checks that nothing counts and the HAL handles the interrupt.
pub fn is_left_clean(machine: &SimMachine) -> bool {
    !machine.is_sampling() && machine.all().all(|cpu| cpu.model().enabled_counters().is_empty())
}

/// Lets steps pass on a processor: so many, in each of which everything occurs so often, and `other` `percent` / 100
/// times as often. Delivers the interrupts at `ip`, and returns their number.
pub fn pass(
    machine: &SimMachine,
    engine: &Engine<&SimMachine>,
    processor: u32,
    (steps, step): (u64, u64),
    (other, percent): (u64, u64),
    ip: u64,
) -> u64 {
    let other = encoding(machine, processor, other);
    let events = |one: model::Selected| if (one.event, one.umask) == other { step * percent / 100 } else { step };
    let pass = |_| {
        machine.run(processor, Mode::User, &events);
        u64::from(machine.deliver(engine, processor, &Interrupted { ip, ..interrupted(processor) }).0)
    };
    (0..steps).map(pass).sum()
}

/// Returns the addresses of the samples.
pub fn addresses(client: Client, engine: &mut Engine<&SimMachine>, session: u64) -> Vec<u64> {
    let (records, _) = fetched(client, engine, session);
    let sample = |record: Record| if let Record::Sample(sample) = record { Some(sample.ip) } else { None };
    records.into_iter().filter_map(sample).collect()
}
