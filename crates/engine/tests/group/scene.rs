//! Helpers for reads of one processor.

use engine::Engine;
use protocol::{
    Code, ErrorCode, Event, EventRequest, GroupReply, ProcessorSet, ReplyHeader, SessionEvent, StartHeader,
};
use simulation::{Client, SimMachine};
use zerocopy::FromBytes;

/// Identities for each way to read a counter, with RDPMC.
pub const IDENTITIES: [&str; 11] = [
    "amd-legacy",
    "zen3-5950x",
    "zen4-7700x",
    "intel-v1",
    "intel-v2",
    "haswell-4710mq",
    "skylake-6600k",
    "alder-lake-12900k",
    "sapphire-rapids-2475x",
    "netburst-cedarmill",
    "p6-coppermine",
];

/// Registers that select and start counters on some of them.
pub fn control_registers(name: &str) -> Vec<u32> {
    match name {
        "amd-legacy" => (0xC001_0000..0xC001_0004).collect(),
        "zen3-5950x" => (0xC001_0200..0xC001_020C).step_by(2).collect(),
        "zen4-7700x" => (0xC001_0200..0xC001_020C).step_by(2).chain([0xC000_0301]).collect(),
        "netburst-cedarmill" => (0x360..0x372).collect(),
        "p6-coppermine" => vec![0x186, 0x187],
        "intel-v1" => (0x186..0x18A).collect(),
        _ => (0x186..0x18E).chain([0x38D, 0x38F]).collect(),
    }
}

pub fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

pub const fn event(source: u64, interval: u32) -> EventRequest {
    EventRequest { event: Event::of(source), modes: simulation::quiet_modes(source), interval, ..EventRequest::EMPTY }
}

pub fn on(processors: &[u32]) -> ProcessorSet {
    let mut set = ProcessorSet::EMPTY;
    assert!(processors.iter().all(|number| set.insert(*number)));
    set
}

pub const fn header(flags: u32, processors: ProcessorSet) -> StartHeader {
    StartHeader { flags, processors, ..StartHeader::EMPTY }
}

/// Starts events and returns the header of the reply.
pub fn start(client: Client, engine: &mut Engine<&SimMachine>, flags: u32, events: &[EventRequest]) -> ReplyHeader {
    let ring = if events.iter().any(|event| event.interval > 0 && event.event.source != 0) { 64 } else { 0 };
    client.start_with(engine, StartHeader { ring, ..header(flags, ProcessorSet::EMPTY) }, events).header()
}

/// Starts events and returns the session.
pub fn started(client: Client, engine: &mut Engine<&SimMachine>, flags: u32, events: &[EventRequest]) -> u64 {
    let answer = start(client, engine, flags, events);
    assert_eq!((answer.status, answer.cause), (0, 0), "{answer:?}");
    answer.detail[0]
}

/// Reads a session on the current processor. Returns the error code of a refusal.
pub fn group(
    client: Client,
    engine: &mut Engine<&SimMachine>,
    session: u64,
    flags: u32,
) -> Result<GroupReply, (ErrorCode, ReplyHeader)> {
    let answer = client.read_group(engine, session, flags);
    match ErrorCode::from_number(answer.header().cause).unwrap() {
        ErrorCode::None => Ok(GroupReply::read_from_bytes(&answer.bytes).unwrap()),
        cause => Err((cause, answer.header())),
    }
}

pub fn sessions(client: Client, engine: &mut Engine<&SimMachine>) -> Vec<SessionEvent> {
    client.tell(engine, Code::ListSessions)
}
