//! Sessions that Windows keeps from being stopped: a thread still profiles.

use model::Mode;
use protocol::status::STATUS_WMI_ALREADY_ENABLED;
use protocol::{CountRecord, ErrorCode, flags};
use simulation::{Client, SimMachine};

use super::scene::{engine, event, group, sessions, start, started};

const THREADS: u32 = flags::THREADS;

#[test]
fn a_stop_that_windows_refuses_changes_nothing_and_can_be_repeated() {
    for source in [None, Some(2)] {
        let machine = SimMachine::named("haswell-4710mq", 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, THREADS, &[event(2, 0), event(6, 0)]);
        machine.set_profiling_threads(1);
        let answer = client.stop(&mut engine, session, source);
        assert_eq!(answer.header().cause, ErrorCode::ThreadProfilingTaken as u32);
        assert_eq!(answer.header().status, STATUS_WMI_ALREADY_ENABLED.number());
        assert_eq!(answer.header().detail[0], u64::from(STATUS_WMI_ALREADY_ENABLED));
        machine.run(1, Mode::User, &|_| 6);
        machine.set_current(1);
        assert_eq!(group(client, &mut engine, session, 0).unwrap().counts[..2], [6, 6], "it goes on");
        assert_eq!(sessions(client, &mut engine)[0].flags, THREADS, "and is still the client's");
        machine.set_profiling_threads(0);
        let ended: Vec<CountRecord> = client.stop(&mut engine, session, source).records();
        assert!(!ended.is_empty() && ended.iter().all(|one| one.count == if one.processor == 1 { 6 } else { 0 }));
        assert_eq!(machine.thread_counters(), 0);
        // After a stop of one event the others are an ordinary session.
        assert_eq!(sessions(client, &mut engine).len(), usize::from(source.is_some()));
        assert!(sessions(client, &mut engine).iter().all(|one| one.flags == 0));
        engine.close(client.0);
        assert!(!machine.is_in_use());
    }
}

#[test]
fn a_closed_handle_leaves_the_counters_until_windows_agrees() {
    type Retry = fn(&mut engine::Engine<&SimMachine>, Client);
    let by_start: Retry = |engine, other| {
        let session = started(other, engine, THREADS, &[event(6, 0)]);
        other.stop(engine, session, None);
    };
    let by_any_start: Retry = |engine, other| {
        let session = started(other, engine, 0, &[event(6, 5_000)]);
        other.stop(engine, session, None);
        other.samples(engine, session, None, 64);
    };
    let by_the_thread: Retry = |engine, _| engine.accumulate_counts();
    let by_stop: Retry = |engine, other| {
        assert_eq!(other.stop(engine, protocol::DETACHED, None).header().cause, 0);
    };
    for retry in [by_start, by_any_start, by_the_thread, by_stop] {
        let machine = SimMachine::named("zen4-7700x", 2);
        let mut engine = engine(&machine);
        let [client, other] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
        let session = started(client, &mut engine, THREADS, &[event(2, 0)]);
        machine.set_profiling_threads(2);
        engine.close(client.0);
        let listed = sessions(other, &mut engine);
        assert_eq!((listed.len(), listed[0].session, listed[0].process), (1, session, 10));
        assert_eq!(listed[0].flags, THREADS | flags::DETACHED, "Windows keeps it");
        assert!(machine.is_reserved() && machine.thread_counters() > 0);
        machine.run(0, Mode::User, &|_| 3);
        assert_eq!(other.read(&mut engine, session)[0].count, 3, "its counters go on");
        // A retry that is refused changes nothing.
        engine.accumulate_counts();
        let refused = start(other, &mut engine, THREADS, &[event(6, 0)]).cause;
        assert_eq!(refused, ErrorCode::ThreadsConflict as u32);
        let refused = other.stop(&mut engine, protocol::DETACHED, None).header();
        assert_eq!(refused.cause, ErrorCode::ThreadProfilingTaken as u32);
        // It is not in the way of a detached session of the same event.
        let beside = started(other, &mut engine, flags::DETACHED, &[event(2, 0)]);
        other.stop(&mut engine, beside, None);
        machine.set_profiling_threads(0);
        retry(&mut engine, other);
        assert_eq!((sessions(other, &mut engine).len(), machine.thread_counters()), (0, 0));
        assert!(!machine.is_in_use());
    }
}

#[test]
fn a_client_may_be_killed_after_every_request() {
    for profiles in [0, 1] {
        for after in 0..6 {
            let machine = SimMachine::named("haswell-4710mq", 2);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let mut session = 0;
            let ordinary = if after >= 1 { started(client, &mut engine, 0, &[event(11, 0)]) } else { 0 };
            if after >= 2 {
                session = started(client, &mut engine, THREADS, &[event(2, 0), event(6, 0)]);
            }
            if after >= 3 {
                group(client, &mut engine, session, 1).unwrap();
            }
            if after >= 4 {
                client.stop(&mut engine, ordinary, None);
            }
            machine.set_profiling_threads(profiles);
            if after >= 5 {
                client.stop(&mut engine, session, None);
            }
            engine.close(client.0);
            engine.close(client.0);
            let is_kept = after >= 2 && profiles == 1;
            assert_eq!(machine.is_in_use(), is_kept, "{after}");
            machine.set_profiling_threads(0);
            engine.accumulate_counts();
            assert!(!machine.is_in_use(), "{after}");
            assert!(machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()), "{after}");
        }
    }
}

#[test]
fn the_engine_ends_even_if_windows_refuses() {
    let machine = SimMachine::named("haswell-4710mq", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    started(client, &mut engine, THREADS, &[event(2, 0)]);
    machine.set_profiling_threads(1);
    engine.shut_down();
    assert!(machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()));
    assert!(!machine.is_reserved());
}
