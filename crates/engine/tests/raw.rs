//! Raw events in requests.

#![expect(clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::Engine;
use model::{Mode, Selected};
use pmu::ProcessorIndex;
use pmu::Support;
use pmu::hal::MAX_RAW;
use pmu::source::RawEvent;
use protocol::{Code, ErrorCode, MAX_EVENTS, ProcessorSet, SessionEvent, SourceRecord, flags, modes};
use simulation::{Client, SimMachine};
use zerocopy::IntoBytes;

fn raw(event: u16, umask: u8) -> u64 {
    RawEvent::new().with_event(event).with_umask(umask.into()).source().0
}

fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, [0; 4]).unwrap()
}

/// Sends `Start` and returns cause, source and first detail of the answer.
fn start(client: Client, engine: &mut Engine<&SimMachine>, flags: u32, sources: &[u64]) -> (u32, u64, u64) {
    let events: Vec<_> = sources.iter().map(|source| (*source, modes::USER)).collect();
    let header = client.start(engine, flags, ProcessorSet::EMPTY, &events).header();
    (header.cause, header.source, header.detail[0])
}

fn query(client: Client, engine: &mut Engine<&SimMachine>, source: u64) -> SourceRecord {
    let [record] = client.ask(engine, Code::QuerySource, [source, 0].as_bytes(), 4096).records()[..] else {
        panic!("one record")
    };
    record
}

#[test]
fn raw_events_and_sources_of_the_table_count_side_by_side_and_their_sessions_are_listed() {
    for name in ["haswell-4710mq", "intel-v1", "zen4-7700x", "bulldozer-fx8150", "ice-lake-sp-6330"] {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let sources = [raw(0xA5, 0x04), 2, raw(0xA5, 0x05)];
        let session = client.started(&mut engine, 0, &sources);
        let events = |selected: Selected| match (selected.event, selected.umask) {
            (0xA5, umask) => u64::from(umask),
            _ => 1_000,
        };
        machine.run(0, Mode::User, &events);
        machine.run(1, Mode::User, &|selected| 2 * events(selected));
        let counts: Vec<_> = client.read(&mut engine, session).iter().map(|it| (it.event.source, it.count)).collect();
        let [first, second, third] = sources;
        let wanted = [(first, 4), (second, 1_000), (third, 5), (first, 8), (second, 2_000), (third, 10)];
        assert_eq!(counts, wanted, "{name}");
        let sessions: Vec<SessionEvent> = client.tell(&mut engine, Code::ListSessions);
        assert_eq!(sessions.iter().map(|holder| holder.event.source).collect::<Vec<_>>(), sources, "{name}");
        let last = client.stop(&mut engine, session, Some(first)).records::<protocol::CountRecord>();
        assert_eq!(last.iter().map(|it| it.count).collect::<Vec<_>>(), [4, 8], "{name}");
        engine.close(client.0);
        assert!(machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()), "{name}");
    }
}

#[test]
fn unsupported_raw_events_are_refused_before_a_register_is_touched() {
    for (name, event, support) in [
        ("haswell-4710mq", raw(0x100, 0), Support::NoSuchEvent),
        ("nehalem-920", raw(0xC5, 0x00), Support::EventNotAvailable),
        ("k8-clawhammer", raw(0x1C0, 0), Support::NoSuchEvent),
        ("zen4-7700x", raw(0xE9, 0), Support::NotOnThisFamily),
        ("zen4-7700x", raw(0xFFF, 0), Support::MergesCounters),
        ("zen-1800x", raw(0xFFF, 0), Support::MergesCounters),
        ("bulldozer-fx8150", raw(0x31, 0x03), Support::NoCounter),
        ("skylake-6600k", raw(0x00, 0x02), Support::NoCounter), // fixed counter 1 has a name of the HAL
        ("yonah-t2400", raw(0x00, 0x01), Support::NoCounter),   // without fixed counters
        ("netburst-cedarmill", raw(0xC0, 0), Support::NoRawEvents),
        ("k7-barton", raw(0xC0, 0), Support::NoRawEvents),
    ] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let told = start(client, &mut engine, 0, &[event]);
        assert_eq!(told, (ErrorCode::UnsupportedSource as u32, event, support as u64), "{name}");
        let record = query(client, &mut engine, event);
        assert_eq!((record.source, record.support, record.counters), (event, support as u32, 0), "{name}");
        let accesses = machine.processor(0).model().accesses();
        assert_eq!((accesses.wrmsr, accesses.rdmsr, accesses.rdpmc), (0, 0, 0), "{name}");
    }
}

#[test]
fn a_query_tells_what_a_raw_event_selects_and_where_it_can_be_counted() {
    let machine = SimMachine::named("haswell-4710mq", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let event = RawEvent::new().with_event(0xC0).with_umask(1).with_cmask(2).with_edge(true).with_inv(true);
    let query = |engine: &mut Engine<&SimMachine>| {
        let record = query(client, engine, event.source().0);
        (record.support, record.select, record.interval, record.running, record.name().is_empty())
    };
    assert_eq!(query(&mut engine), (0, 0x0287_01C0, 65_536, 0, true));
    client.started(&mut engine, 0, &[event.source().0]);
    assert_eq!(query(&mut engine), (0, 0x0287_01C0, 65_536, 1, true));
    let input = [event.source().0, 100_000];
    let header = client.ask(&mut engine, Code::SetInterval, input.as_bytes(), 4096).header();
    assert_eq!((header.cause, header.source), (ErrorCode::NoInterval as u32, event.source().0));
}

#[test]
fn a_query_tells_which_counters_count_an_event_and_whether_that_is_known() {
    for (name, event, counters, unlisted) in [
        ("skylake-6600k", raw(0xD1, 0x20), 0b1111, 0),
        ("skylake-6600k", raw(0xA1, 0x01), 0xFF, 0),
        ("skylake-6600k", raw(0xA1, 0x03), 0xFF, 1),
        ("sapphire-rapids-2475x", raw(0xD1, 0x20), 0b1111, 0),
        ("bulldozer-fx8150", raw(0x00, 0x01), 0b11_1000, 0),
        ("bulldozer-fx8150", raw(0xA1, 0x01), 0b11_1111, 1),
        ("zen4-7700x", raw(0xC0, 0), 0b11_1111, 0),
        ("k10-thuban", raw(0xC0, 0), 0b1111, 0),
        ("core2-e5200", raw(0x12, 0), 0b10, 0),
        ("core2-e5200", raw(0x04, 0), 0b11, 0),
        ("intel-hybrid", 2, 0x1FF, 0),
    ] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let record = query(client, &mut engine, event);
        assert_eq!((record.counters, record.unlisted), (counters, unlisted), "{name} {event:#x}");
    }
}

#[test]
fn slots_of_raw_events_that_no_session_counts_are_reused() {
    let machine = SimMachine::named("zen4-7700x", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let event = |number: u16| raw(0xA0 + (number >> 8), number.to_le_bytes()[0]);
    let kept = client.started(&mut engine, 0, &[event(0)]);
    // Many more events than slots, two at a time.
    for number in 1..=2 * MAX_RAW {
        let session = client.started(&mut engine, 0, &[event(number), event(number + 1)]);
        machine.run(0, Mode::User, &|selected| u64::from(selected.umask) + 1);
        let counts: Vec<_> = client.read(&mut engine, session).iter().map(|it| (it.event.source, it.count)).collect();
        let of = |number: u16| (event(number), u64::from(number.to_le_bytes()[0]) + 1);
        assert_eq!(counts, [of(number), of(number + 1)]);
        client.stop(&mut engine, session, None);
    }
    let [one] = client.read(&mut engine, kept)[..] else { panic!("one event on one processor") };
    assert_eq!(one.count, u64::from(2 * MAX_RAW));
    let hal = engine.sampler().hal();
    let state = hal.cpu_counters(ProcessorIndex::BOOT).get(u8::try_from(one.counter).unwrap());
    assert_eq!(hal.source(state).0, event(0), "what goes on is still itself, also where it is set up anew");
    // A single request can exceed the slots; it leaves nothing behind.
    let many: Vec<u64> = (600..).take(MAX_EVENTS).map(event).collect();
    assert_ne!(start(client, &mut engine, 0, &many).0, 0);
    assert_eq!(client.tell::<_, SessionEvent>(&mut engine, Code::ListSessions).len(), 1);
    assert_eq!(start(client, &mut engine, flags::DETACHED, &[event(700)]).0, 0);
}

#[test]
fn a_refusal_without_a_free_counter_reports_how_many_could_count_the_event() {
    let machine = SimMachine::named("haswell-4710mq", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    // UnhaltedReferenceCycles needs fixed counter 2; the raw events use the four general counters.
    for (sources, refused, there, wanted) in [
        (vec![27, 27], 27, 1, 2),
        (vec![27, 2, 27], 27, 1, 2),
        (vec![raw(0xA1, 1); 5], raw(0xA1, 1), 4, 5),
        (vec![2, raw(0xA1, 1), 27, raw(0xA1, 1), raw(0xA1, 1), 2, raw(0xA1, 1)], raw(0xA1, 1), 4, 4),
    ] {
        let events: Vec<_> = sources.iter().map(|source| (*source, modes::USER)).collect();
        let header = client.start(&mut engine, 0, ProcessorSet::EMPTY, &events).header();
        assert_eq!((header.cause, header.source), (ErrorCode::NoFreeCounter as u32, refused), "{sources:x?}");
        assert_eq!(header.detail, [there, wanted], "{sources:x?}");
    }
}
