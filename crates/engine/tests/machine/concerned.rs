//! A request interrupts only the processors that it concerns.

use engine::Engine;
use protocol::CountRecord;
use simulation::{Client, SimMachine};

use super::scene::{IDENTITIES, SHORT, engine, event, on, run, started};

/// Processors of the machine.
const COUNT: u32 = 8;

/// Where requests arrive.
const HERE: u32 = 2;

/// The processor of the session.
const THERE: u32 = 5;

/// Returns the processors that `work` interrupts.
fn interrupted<T>(machine: &SimMachine, work: impl FnOnce() -> T) -> (Vec<u32>, T) {
    let before = machine.interruptions();
    let result = work();
    let pairs = machine.interruptions().into_iter().zip(before);
    let more = (0..).zip(pairs).filter(|(_, (after, before))| after > before);
    (more.map(|(processor, _)| processor).collect(), result)
}

#[test]
fn timers_and_ticks_run_only_where_a_session_needs_them() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, COUNT).with_active(COUNT - 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let timers = || (machine.ticking(), machine.timed());
        let by_counter = started(client, &mut engine, on(&[1, 3]), &[event(2, SHORT), event(0, 0)]);
        assert_eq!(timers(), (vec![1, 3], vec![]), "{name}: nothing is sampled by time");
        let by_time = started(client, &mut engine, on(&[3, THERE]), &[event(0, 10_000)]);
        assert_eq!(timers(), (vec![1, 3], vec![3, THERE]), "{name}");
        let counted = started(client, &mut engine, on(&[0]), &[event(6, 0)]);
        assert_eq!(timers(), (vec![1, 3], vec![3, THERE]), "{name}: nothing is sampled");
        let everywhere = started(client, &mut engine, on(&[]), &[event(0, 10_000)]);
        assert_eq!(timers(), (vec![1, 3], (0..COUNT - 1).collect()), "{name}");
        machine.add_processor(&mut engine);
        assert_eq!(timers(), (vec![1, 3], (0..COUNT).collect()), "{name}: only a session by time is everywhere");
        client.stop(&mut engine, everywhere, None);
        assert_eq!(timers(), (vec![1, 3], vec![3, THERE]), "{name}");
        client.stop(&mut engine, by_counter, None);
        assert_eq!(timers(), (vec![], vec![3, THERE]), "{name}");
        for session in [by_time, counted] {
            client.stop(&mut engine, session, None);
        }
        assert_eq!(timers(), (vec![], vec![]), "{name}");
        engine.close(client.0);
        assert!(!machine.is_in_use(), "{name}");
    }
}

/// Starts four events on some processors, two of them sampled; reads, follows and stops them. Returns the processors
/// that each of the four requests interrupted.
fn life(machine: &SimMachine, engine: &mut Engine<&SimMachine>, processors: &[u32]) -> [Vec<u32>; 4] {
    let client = Client::open(engine, 1, 10);
    let events = [event(2, SHORT), event(6, 0), event(11, SHORT), event(0, 0)];
    let (started, session) = interrupted(machine, || started(client, engine, on(processors), &events));
    let counted = processors.last().map_or(THERE, |last| *last);
    run(machine, engine, counted, 100);
    let (read, counts): (_, Vec<CountRecord>) = interrupted(machine, || client.read(engine, session));
    assert!(counts.iter().any(|one| (one.processor, one.event.source, one.count) == (counted, 6, 100)), "{counts:?}");
    let (followed, ()) = interrupted(machine, || engine.accumulate_counts());
    let (stopped, answer) = interrupted(machine, || client.stop(engine, session, None));
    assert_eq!(answer.header().status, 0);
    engine.close(client.0);
    assert!(!machine.is_in_use());
    [started, read, followed, stopped]
}

#[test]
fn a_session_on_one_processor_interrupts_no_other() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, COUNT);
        let mut engine = engine(&machine);
        machine.set_current(HERE);
        assert_eq!(life(&machine, &mut engine, &[THERE]), [[THERE]; 4], "{name}");
        assert_eq!(life(&machine, &mut engine, &[1, 3, THERE]), [[1, 3, THERE]; 4], "{name}");
    }
}

#[test]
fn a_session_on_the_current_processor_interrupts_none() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, COUNT);
        let mut engine = engine(&machine);
        machine.set_current(HERE);
        assert_eq!(life(&machine, &mut engine, &[HERE]), [[0; 0]; 4], "{name}");
    }
}

#[test]
fn a_session_on_all_processors_interrupts_all_at_once() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, COUNT);
        let mut engine = engine(&machine);
        let broadcasts = machine.broadcasts();
        let all: Vec<u32> = (0..COUNT).collect();
        assert_eq!(life(&machine, &mut engine, &[]), [&*all; 4], "{name}");
        assert!(machine.broadcasts() > broadcasts, "{name}");
    }
}
