//! The clock beside a counter: each access takes a unit of time, in which every event occurs once, so that a count
//! would equal its time if both were taken at one moment.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::{Engine, Interrupted};
use model::Mode;
use pmu::source::RawEvent;
use protocol::{CountRecord, Event, EventRequest, StartHeader, flags, modes};
use simulation::{Client, SimMachine};

const NOWHERE: Interrupted = Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };

/// Time between two expiries of the timers, in units of 100 ns.
const ROUND: u64 = 40_000;

const MACHINES: [&str; 6] =
    ["intel-v1", "p6-coppermine", "skylake-6600k", "alder-lake-12900k", "amd-legacy", "zen4-7700x"];

/// Counts so many events that any counter can count, over 96 rounds. Returns the records, and the accesses of the
/// start, of each turn at most, and of the reading.
fn counted(name: &str, events: u16, flags: u32) -> (Vec<CountRecord>, [u64; 3]) {
    let machine = SimMachine::named(name, 1);
    let cpu = machine.processor(0);
    cpu.steady_time();
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let event = |number| EventRequest {
        event: Event::of(RawEvent::new().with_event(0x90 + number).with_umask(0x81).source().0),
        modes: modes::BOTH,
        ..EventRequest::EMPTY
    };
    let events: Vec<_> = (0..events).map(event).collect();
    let mut last = 0;
    let mut since = || cpu.time_of_accesses() - std::mem::replace(&mut last, cpu.time_of_accesses());
    let header = client.start_with(&mut engine, StartHeader { flags, ..StartHeader::EMPTY }, &events).header();
    assert_eq!((header.status, header.cause), (0, 0), "{name}: {header:x?}");
    let start = since();
    let mut turn = 0;
    for _ in 0..96 {
        machine.pass(ROUND);
        machine.run(0, Mode::Kernel, &|_| ROUND);
        if machine.timer().is_some() {
            since();
            machine.expire(&engine, 0, &NOWHERE);
            turn = turn.max(since());
        }
    }
    since();
    let records = client.read(&mut engine, header.detail[0]);
    assert_eq!(records.len(), events.len(), "{name}");
    (records, [start, turn, since()])
}

#[test]
fn a_count_and_its_time_differ_by_the_accesses_of_one_start_and_one_reading() {
    for name in MACHINES {
        let (records, [start, _, reading]) = counted(name, 1, 0);
        for CountRecord { count, enabled, .. } in records {
            println!("{name}: {count} in {enabled}, start {start}, reading {reading}");
            assert!(count + start >= enabled, "{name}: {count} in {enabled}, start {start}");
            assert!(count <= enabled + reading, "{name}: {count} in {enabled}, reading {reading}");
        }
    }
}

#[test]
fn the_count_of_an_event_that_takes_turns_differs_by_the_accesses_of_each_turn() {
    for name in MACHINES {
        let (records, [start, turn, reading]) = counted(name, 24, flags::MULTIPLEX);
        for CountRecord { count, running, turns, .. } in records {
            println!("{name}: {count} in {running}, {turns} turns of {turn}, start {start}, reading {reading}");
            assert!(count + start >= running, "{name}: {count} in {running}, start {start}");
            let most = running + turn * (turns + 1) + reading;
            assert!(count <= most, "{name}: {count} in {running}, {turns} turns of {turn}, reading {reading}");
        }
    }
}
