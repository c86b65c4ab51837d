//! Counters that a client allows for an event: they narrow the constraints of the driver, and never widen them.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::Engine;
use model::Mode;
use pmu::source::RawEvent;
use protocol::status::{STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_PARAMETER};
use protocol::{
    BRANCH_BUFFER, BRANCHES, Code, CountRecord, ErrorCode, Event, EventRequest, ReplyHeader, SessionEvent, StartHeader,
    modes,
};
use simulation::{Client, SimMachine};

const INTERVAL: u32 = 65_536;

fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

fn raw(event: u16, umask: u8) -> u64 {
    RawEvent::new().with_event(event).with_umask(umask.into()).source().0
}

const fn event(source: u64, counters: u32) -> EventRequest {
    EventRequest { event: Event { counters, ..Event::of(source) }, modes: modes::USER, ..EventRequest::EMPTY }
}

const fn sampled(source: u64, counters: u32) -> EventRequest {
    EventRequest { interval: INTERVAL, ..event(source, counters) }
}

fn start(client: Client, engine: &mut Engine<&SimMachine>, events: &[EventRequest]) -> ReplyHeader {
    let ring = if events.iter().any(|event| event.interval != 0) { 64 } else { 0 };
    let header = StartHeader { ring, ..StartHeader::EMPTY };
    client.start_with(engine, header, events).header()
}

/// Starts events and returns their counters on processor 0.
fn counters(client: Client, engine: &mut Engine<&SimMachine>, events: &[EventRequest]) -> Vec<u32> {
    let header = start(client, engine, events);
    assert_eq!((header.status, header.cause), (0, 0), "{events:x?} {:x?}", header.detail);
    let records: Vec<CountRecord> = client.read(engine, header.detail[0]);
    records.iter().filter(|record| record.processor == 0).map(|record| record.counter).collect()
}

#[test]
fn a_narrowed_event_counts_on_an_allowed_counter_of_every_interface() {
    for (name, source, last) in [
        ("intel-v1", raw(0xC4, 0), 3),
        ("haswell-4710mq", raw(0xC4, 0), 3),
        ("amd-legacy", raw(0xC2, 0), 3),
        ("zen4-7700x", raw(0xC2, 0), 5),
        ("p6-coppermine", raw(0xC4, 0), 1),
        ("netburst-cedarmill", 2, 17),
    ] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        assert_eq!(counters(client, &mut engine, &[event(source, 1 << last)]), [last], "{name}");
        machine.run(0, Mode::User, &|_| 7);
        let sessions: Vec<SessionEvent> = client.tell(&mut engine, Code::ListSessions);
        assert_eq!(client.read(&mut engine, sessions[0].session)[0].count, 7, "{name}");
    }
}

/// Event A3H/08H counts on counter 2 alone (Linux, arch/x86/events/intel/core.c, `intel_hsw_event_constraints`).
#[test]
fn no_mask_widens_the_constraints_of_an_event() {
    let machine = SimMachine::named("haswell-4710mq", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let source = raw(0xA3, 0x08);
    for (mask, there) in [(0b1011, 0b100), (1 << 31, 0b100), (0xFFFF_FFFB, 0b100)] {
        let refused = start(client, &mut engine, &[event(2, 0), event(source, mask)]);
        assert_eq!((refused.status, refused.cause), (STATUS_INVALID_PARAMETER.number(), ErrorCode::BadCounters as u32));
        assert_eq!((refused.source, refused.processor), (source, 0));
        assert_eq!(refused.detail, [there, mask.into()]);
        assert_eq!(client.tell::<_, SessionEvent>(&mut engine, Code::ListSessions), []);
        assert!(machine.all().all(|cpu| cpu.model().accesses().wrmsr == 0), "no register is written");
    }
    for mask in [0, 0b100, u32::MAX] {
        let client = Client::open(&mut engine, 2, 10);
        assert_eq!(counters(client, &mut engine, &[event(source, mask)]), [2], "{mask:#x}");
        engine.close(client.0);
    }
}

#[test]
fn a_fixed_counter_is_left_out_by_a_mask_without_it() {
    let machine = SimMachine::named("haswell-4710mq", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let found = counters(client, &mut engine, &[event(2, 0), event(2, 0b1111), event(2, 0b10)]);
    assert!(found[0] >= 4 && [0, 2, 3].contains(&found[1]) && found[2] == 1, "{found:?}");
    // UnhaltedReferenceCycles has fixed counter 2 alone.
    let refused = start(client, &mut engine, &[event(27, 0b1111)]);
    assert_eq!(refused.cause, ErrorCode::BadCounters as u32);
    assert_eq!(refused.detail, [1 << 6, 0b1111]);
}

#[test]
fn events_without_a_counter_take_no_mask() {
    let machine = SimMachine::named("haswell-4710mq", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let branches = EventRequest { interval: *BRANCH_BUFFER.start(), ..event(BRANCHES, 2) };
    for refused in [event(0, 2), branches] {
        let header = start(client, &mut engine, &[refused]);
        assert_eq!((header.cause, header.detail), (ErrorCode::BadCounters as u32, [0, 2]), "{refused:?}");
    }
}

#[test]
fn the_refusal_without_a_free_counter_counts_the_allowed_ones() {
    let machine = SimMachine::named("haswell-4710mq", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let source = raw(0xA1, 1);
    let refused = start(client, &mut engine, &[event(source, 0b11), event(source, 0b11), event(source, 0b11)]);
    let cause = (refused.status, refused.cause);
    assert_eq!(cause, (STATUS_INSUFFICIENT_RESOURCES.number(), ErrorCode::NoFreeCounter as u32));
    assert_eq!(refused.detail, [2, 3]);
}

#[test]
fn a_counter_is_shared_only_with_a_session_that_allows_it() {
    for name in ["intel-v1", "haswell-4710mq", "amd-legacy", "zen4-7700x"] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let [first, second, third] = [1, 2, 3].map(|handle| Client::open(&mut engine, handle, 10));
        let source = raw(0xC2, 1);
        assert_eq!(counters(first, &mut engine, &[sampled(source, 0b10)]), [1], "{name}");
        assert_eq!(counters(second, &mut engine, &[sampled(source, 0b1101)]).len(), 1, "{name}");
        assert_eq!(machine.processor(0).model().enabled_counters().len(), 2, "{name}: not shared");
        assert_eq!(counters(third, &mut engine, &[sampled(source, 0b10)]), [1], "{name}");
        assert_eq!(machine.processor(0).model().enabled_counters().len(), 2, "{name}: shared");
        // The remaining session keeps the counter.
        engine.close(first.0);
        assert_eq!(machine.processor(0).model().enabled_counters().len(), 2, "{name}");
    }
}

#[test]
fn every_processor_has_the_same_mask() {
    let machine = SimMachine::named("zen4-7700x", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let header = start(client, &mut engine, &[event(raw(0xC2, 0), 0b10_0000)]);
    let records: Vec<CountRecord> = client.read(&mut engine, header.detail[0]);
    assert_eq!(records.iter().map(|record| record.counter).collect::<Vec<_>>(), [5, 5]);
}
