//! Events with extra registers, and a machine that counts them.

use engine::Engine;
use model::{Mode, Selected};
use pmu::extra::Selector;
use pmu::source::RawEvent;
use protocol::{CountRecord, Event, EventRequest, ReplyHeader, StartHeader, modes};
use simulation::{Client, SimMachine};

/// MSR_OFFCORE_RSP_0, MSR_OFFCORE_RSP_1, MSR_PEBS_LD_LAT_THRESHOLD, MSR_PEBS_FRONTEND, MSR_OMR_0 to 3.
pub const REGISTERS: [u32; 8] = [0x1A6, 0x1A7, 0x3F6, 0x3F7, 0x3E0, 0x3E1, 0x3E2, 0x3E3];

/// Demand data reads with any response, and other values.
pub const READS: u64 = 0x1_0001;
pub const WRITES: u64 = 0x1_0002;
pub const CODE_READS: u64 = 0x1_0004;

pub const ONLY_COUNTED: StartHeader = StartHeader::EMPTY;

pub fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

/// Returns the request of an event with an extra register.
pub const fn extra(event: u16, umask: u16, selector: Selector, value: u64) -> EventRequest {
    let raw = RawEvent::new().with_event(event).with_umask(umask).with_selector(selector as u8);
    let event = Event { extra: value, ..Event::of(raw.source().0) };
    EventRequest { event, modes: modes::USER, ..EventRequest::EMPTY }
}

pub const fn offcore(value: u64) -> EventRequest {
    extra(0xB7, 0x01, Selector::OffcoreResponse, value)
}

/// The off-module response of Nova Lake's P cores that has register `number`.
pub const fn off_module(number: u16, value: u64) -> EventRequest {
    extra(0x2A, 1 << number, Selector::OffcoreResponse, value)
}

pub const fn front_end(value: u64) -> EventRequest {
    extra(0xC6, 0x01, Selector::FrontEnd, value)
}

pub fn on(mut header: StartHeader, processors: &[u32]) -> StartHeader {
    for processor in processors {
        assert!(header.processors.insert(*processor));
    }
    header
}

pub fn start(
    client: Client,
    engine: &mut Engine<&SimMachine>,
    header: StartHeader,
    events: &[EventRequest],
) -> ReplyHeader {
    client.start_with(engine, header, events).header()
}

pub fn started(client: Client, engine: &mut Engine<&SimMachine>, header: StartHeader, events: &[EventRequest]) -> u64 {
    let reply = start(client, engine, header, events);
    assert_eq!((reply.status, reply.cause), (0, 0), "{events:x?} {:x?}", reply.detail);
    reply.detail[0]
}

/// How often an event with a value happens: each value has another number, so that a count of another value is seen.
pub fn rate(Selected { event, umask, .. }: Selected, value: u64) -> u64 {
    // Both events of off-core responses count the same.
    let event = if value == 0 { u64::from(event) << 8 | u64::from(umask) } else { 1 };
    event + (value ^ value >> 16) % 1_009 * 7
}

pub fn run(machine: &SimMachine, processor: u32) {
    machine.processor(processor).model().run_with_extra(Mode::User, &rate);
}

pub fn registers(machine: &SimMachine, processor: u32) -> [Option<u64>; 8] {
    machine.processor(processor).model().uncounted(|model| REGISTERS.map(|register| model.rdmsr(register).ok()))
}

pub fn counts(client: Client, engine: &mut Engine<&SimMachine>, session: u64) -> Vec<CountRecord> {
    client.read(engine, session)
}
