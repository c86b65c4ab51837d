//! AMD's event 003H takes two counters, which are merged, in every life of a session.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::{Engine, Interrupted};
use model::{InterruptMode, Mode, Selected};
use pmu::source::RawEvent;
use protocol::{Code, CountRecord, Event, EventRequest, InfoReply, Record, StartHeader, modes};
use simulation::{Client, SimMachine};
use zerocopy::FromBytes;

const ZENS: [&str; 3] = ["zen-1800x", "zen3-5950x", "zen4-7700x"];
const INTERVAL: u32 = 32_000;
/// The select register of counter 1 (PPR, MSRC001_0202).
const SELECT_1: u32 = 0xC001_0202;

fn source() -> u64 {
    RawEvent::new().with_event(3).with_umask(0x0F).source().0
}

const fn event(source: u64, interval: u32) -> EventRequest {
    EventRequest { event: Event::of(source), modes: modes::USER, interval, ..EventRequest::EMPTY }
}

fn started(client: Client, engine: &mut Engine<&SimMachine>, events: &[EventRequest]) -> u64 {
    let ring = if events.iter().any(|event| event.interval != 0) { 64 } else { 0 };
    let budget = if ring == 0 { 0 } else { 900 };
    let header = StartHeader { ring, budget, ..StartHeader::EMPTY };
    let header = client.start_with(engine, header, events).header();
    assert_eq!((header.status, header.cause), (0, 0));
    header.detail[0]
}

/// A thousand cycles with 32 operations each.
fn work(selected: Selected) -> u64 {
    if selected.event == 3 { 32_000 } else { 1_000 }
}

fn run(machine: &SimMachine, engine: &Engine<&SimMachine>) {
    const NOWHERE: Interrupted = Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };
    machine.run(0, Mode::User, &work);
    machine.deliver(engine, 0, &NOWHERE);
}

fn samples(client: Client, engine: &mut Engine<&SimMachine>, session: u64) -> usize {
    let answer = client.samples(engine, session, None, 1_000).unwrap();
    answer.try_samples().unwrap().iter().filter(|record| matches!(record, Record::Sample(_))).count()
}

fn in_use(client: Client, engine: &mut Engine<&SimMachine>) -> u32 {
    let answer = client.ask(engine, Code::Info, &[], size_of::<InfoReply>());
    InfoReply::read_from_bytes(&answer.bytes).unwrap().counters_in_use
}

fn select_1(machine: &SimMachine) -> u64 {
    machine.processor(0).model().rdmsr(SELECT_1).unwrap()
}

#[test]
fn two_sessions_share_a_pair_and_the_second_keeps_it() {
    for name in ZENS {
        for mode in InterruptMode::ALL {
            let machine = SimMachine::named(name, 1).with_interrupt_mode(mode);
            let mut engine = Engine::new(&machine, [0; 4]).unwrap();
            let [first, second, third] = [1, 2, 3].map(|handle| Client::open(&mut engine, handle, 10));
            let one = started(first, &mut engine, &[event(source(), INTERVAL)]);
            let two = started(second, &mut engine, &[event(source(), INTERVAL)]);
            assert_eq!(in_use(first, &mut engine), 2, "{name}: a pair for both");
            (0..3).for_each(|_| run(&machine, &engine));
            assert_eq!([samples(first, &mut engine, one), samples(second, &mut engine, two)], [3, 3], "{name}");
            engine.close(first.0);
            assert_eq!(in_use(second, &mut engine), 2, "{name}");
            // No other session gets the odd counter: four are left.
            let four = [event(2, 0), event(6, 0), event(11, 0), event(0x13, 0)];
            let others = started(third, &mut engine, &four);
            let counters: Vec<u32> =
                client_counts(third, &mut engine, others).iter().map(|record| record.counter).collect();
            assert_eq!(counters.len(), 4, "{name}");
            run(&machine, &engine);
            assert_eq!(samples(second, &mut engine, two), 1, "{name}");
            let counts = client_counts(second, &mut engine, two);
            assert_eq!((counts[0].count, counts[0].samples), (128_000, 4), "{name}");
            assert!(!counters.contains(&counts[0].counter) && !counters.contains(&(counts[0].counter + 1)), "{name}");
            engine.close(third.0);
            engine.close(second.0);
            assert_eq!(in_use(Client::open(&mut engine, 4, 10), &mut engine), 0, "{name}");
            assert_eq!(select_1(&machine), 0, "{name}: not merged any more");
        }
    }
}

fn client_counts(client: Client, engine: &mut Engine<&SimMachine>, session: u64) -> Vec<CountRecord> {
    client.read(engine, session)
}

#[test]
fn a_pair_continues_after_a_sleep() {
    for name in ZENS {
        let machine = SimMachine::named(name, 1);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, &[event(source(), INTERVAL)]);
        run(&machine, &engine);
        machine.fall_asleep(&engine);
        machine.wake(&engine);
        (0..2).for_each(|_| run(&machine, &engine));
        assert_eq!(samples(client, &mut engine, session), 3, "{name}");
        assert_eq!(client_counts(client, &mut engine, session)[0].count, 96_000, "{name}");
    }
}

#[test]
fn a_refused_start_gives_the_pair_back() {
    for name in ZENS {
        let machine = SimMachine::named(name, 1);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        let header = StartHeader::EMPTY;
        let refused = client.start_with(&mut engine, header, &[event(source(), 0); 4]).header();
        assert_eq!(refused.cause, protocol::ErrorCode::NoFreeCounter as u32, "{name}");
        assert_eq!(refused.detail, [3, 4], "{name}: three pairs for four events");
        assert_eq!(in_use(client, &mut engine), 0, "{name}");
        started(client, &mut engine, &[event(source(), 0); 3]);
        assert_eq!(in_use(client, &mut engine), 6, "{name}");
        machine.run(0, Mode::User, &work);
    }
}
