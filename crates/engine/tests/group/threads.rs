//! Sessions for Windows' thread profiling: how they are placed, and why they are refused.

use model::Mode;
use protocol::status::{STATUS_NOT_IMPLEMENTED, STATUS_WMI_ALREADY_ENABLED};
use protocol::{
    BRANCHES, CountRecord, ErrorCode, Event, EventRequest, NtStatus, ProcessorSet, ReplyHeader, SessionEvent,
    StartHeader, flags,
};
use simulation::{Call, Client, SimMachine};

use super::scene::{IDENTITIES, engine, event, group, header, on, sessions, start, started};

const THREADS: u32 = flags::THREADS;

fn cause(reply: ReplyHeader) -> ErrorCode {
    ErrorCode::from_number(reply.cause).unwrap()
}

/// Returns the counter of each event, which must be the same on every processor.
fn counters(counts: &[CountRecord], events: usize) -> Vec<u32> {
    let first: Vec<u32> = counts[..events].iter().map(|count| count.counter).collect();
    for of_one in counts.chunks(events) {
        assert_eq!(of_one.iter().map(|count| count.counter).collect::<Vec<_>>(), first, "{counts:?}");
    }
    first
}

#[test]
fn each_event_has_the_same_general_counter_everywhere_and_windows_is_configured_up_to_the_highest() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 3);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        // Instructions have a fixed counter on Intel's processors, which no thread can use.
        let session = started(client, &mut engine, THREADS, &[event(6, 0), event(2, 0)]);
        for processor in 0..3 {
            machine.run(processor, Mode::User, &|_| 10);
        }
        let counts = client.read(&mut engine, session);
        assert!(counts.iter().all(|count| count.count == 10), "{name}: {counts:?}");
        let counters = counters(&counts, 2);
        assert!(counters.iter().all(|counter| *counter < 16), "{name}");
        assert_eq!(machine.thread_counters(), counters.iter().max().unwrap() + 1, "{name}");
        for processor in 0..3 {
            let general = machine.processor(processor).model().enabled_counters();
            assert!(general.iter().all(|(id, _)| matches!(id, model::CounterId::General(_))), "{name}: {general:?}");
        }
        let listed = sessions(client, &mut engine);
        assert!(listed.iter().all(|one| one.flags == THREADS), "{name}");
        assert_eq!(group(client, &mut engine, session, 0).unwrap().counts[..2], [10, 10], "{name}");
        let ended: Vec<CountRecord> = client.stop(&mut engine, session, None).records();
        assert_eq!(ended.len(), 6, "{name}");
        assert_eq!(machine.thread_counters(), 0, "{name}");
        assert!(!machine.is_in_use(), "{name}");
    }
}

#[test]
fn a_counter_that_is_in_use_on_one_processor_is_used_on_none() {
    for name in ["zen4-7700x", "haswell-4710mq", "amd-legacy"] {
        let machine = SimMachine::named(name, 4);
        let mut engine = engine(&machine);
        let [client, other] = [1, 2].map(|handle| Client::open(&mut engine, handle, u32::try_from(handle).unwrap()));
        // Other sessions have a counter each on two processors, which are different ones.
        let taken = |engine: &mut _, processors: &[u32], source, counters| {
            let event = EventRequest { event: Event { counters, ..Event::of(source) }, ..event(source, 0) };
            let answer = other.start_with(engine, header(0, on(processors)), &[event]).header();
            assert_eq!(answer.cause, 0);
        };
        taken(&mut engine, &[1], 11, 1);
        taken(&mut engine, &[3], 11, 2);
        let session = started(client, &mut engine, THREADS, &[event(6, 0)]);
        let used = counters(&client.read(&mut engine, session), 1);
        assert!(used[0] >= 2, "{name}: {used:?}");
        client.stop(&mut engine, session, None);
        taken(&mut engine, &[2], 11, 4);
        taken(&mut engine, &[0], 11, 8);
        if name == "amd-legacy" || name == "haswell-4710mq" {
            let answer = client.start_with(&mut engine, header(THREADS, ProcessorSet::EMPTY), &[event(6, 0)]);
            let holders: Vec<SessionEvent> = answer.records();
            assert_eq!(cause(answer.header()), ErrorCode::NoFreeCounter, "{name}");
            assert!(holders.len() == 4 && holders.iter().all(|one| one.process == 2), "{name}: {holders:?}");
            assert_eq!(machine.thread_counters(), 0);
        }
    }
}

#[test]
fn flags_that_do_not_fit_are_refused_with_their_bits() {
    let machine = SimMachine::named("haswell-4710mq", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    for (what, header, event) in [
        ("detached", header(THREADS | flags::DETACHED, ProcessorSet::EMPTY), event(2, 0)),
        ("turns", header(THREADS | flags::MULTIPLEX, ProcessorSet::EMPTY), event(2, 0)),
        ("some processors", header(THREADS, on(&[0, 1])), event(2, 0)),
        ("sampled", StartHeader { ring: 64, ..header(THREADS, ProcessorSet::EMPTY) }, event(2, 5_000)),
        ("branches", StartHeader { ring: 64, ..header(THREADS, ProcessorSet::EMPTY) }, event(BRANCHES, 64)),
    ] {
        let answer = client.start_with(&mut engine, header, &[event]).header();
        assert_eq!((cause(answer), answer.detail[0]), (ErrorCode::BadFlags, header.flags.into()), "{what}");
        assert!(!machine.is_in_use(), "{what}");
    }
    let forced = started(client, &mut engine, THREADS | flags::FORCE, &[event(2, 0)]);
    client.stop(&mut engine, forced, None);
}

#[test]
fn an_event_without_a_common_general_counter_is_refused_by_its_source() {
    let slots = pmu::source::RawEvent::new().with_umask(0x04).source().0;
    let of_type = |core_type| EventRequest { event: Event { core_type, ..Event::of(2) }, ..event(2, 0) };
    for (name, wanted) in [
        ("haswell-4710mq", event(0, 0)),
        ("sapphire-rapids-2475x", event(slots, 0)),
        ("intel-hybrid", of_type(0x40)),
        ("pentium-p55c", event(2, 0)),
        // The counters of a core are divided between its threads, and RDPMC does not know it.
        ("netburst-irwindale", event(2, 0)),
        // Only a fixed counter is allowed.
        ("haswell-4710mq", EventRequest { event: Event { counters: 1 << 4, ..Event::of(2) }, ..event(2, 0) }),
    ] {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let answer = start(client, &mut engine, THREADS, &[wanted]);
        assert_eq!(
            (cause(answer), answer.source),
            (ErrorCode::NoCommonCounter, wanted.event.source),
            "{name} {wanted:?}"
        );
        assert!(!machine.is_in_use(), "{name}");
        assert_eq!(sessions(client, &mut engine), [], "{name}");
    }
}

#[test]
fn both_core_types_of_a_hybrid_use_the_same_counters() {
    let machine = SimMachine::named("intel-hybrid", 4);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let events = [event(2, 0), event(6, 0)];
    let session = started(client, &mut engine, THREADS, &events);
    counters(&client.read(&mut engine, session), events.len());
    client.stop(&mut engine, session, None);
    let raw = pmu::source::RawEvent::new().with_event(0xD1).with_umask(0x20).source().0;
    let answer = start(client, &mut engine, THREADS, &[event(raw, 0)]);
    assert_eq!(cause(answer), ErrorCode::CoreTypeNeeded, "it is not the same event");
}

#[test]
fn a_session_that_samples_by_counters_and_one_for_threads_exclude_each_other() {
    let machine = SimMachine::named("haswell-4710mq", 2);
    let mut engine = engine(&machine);
    let [client, other] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10 * u32::try_from(handle).unwrap()));
    let conflict = |engine: &mut _, flags, event: EventRequest, holder: u64, process| {
        let ring = if event.interval > 0 { 64 } else { 0 };
        let header = StartHeader { ring, ..header(flags, ProcessorSet::EMPTY) };
        let answer = client.start_with(engine, header, &[event]);
        let holders: Vec<SessionEvent> = answer.records();
        assert_eq!(cause(answer.header()), ErrorCode::ThreadsConflict);
        assert_eq!(answer.header().status, protocol::status::STATUS_DEVICE_BUSY.number());
        assert!(!holders.is_empty() && holders.iter().all(|one| (one.session, one.process) == (holder, process)));
    };
    let sampling = started(other, &mut engine, 0, &[event(2, 5_000)]);
    conflict(&mut engine, THREADS, event(6, 0), sampling, 20);
    assert_eq!(machine.thread_counters(), 0);
    other.stop(&mut engine, sampling, None);
    let threads = started(other, &mut engine, THREADS, &[event(2, 0)]);
    conflict(&mut engine, 0, event(6, 5_000), threads, 20);
    conflict(&mut engine, THREADS, event(6, 0), threads, 20);
    // These use no interrupt of counters.
    let counting = started(client, &mut engine, 0, &[event(6, 0)]);
    let timed = StartHeader { ring: 64, ..header(0, ProcessorSet::EMPTY) };
    assert_eq!(client.start_with(&mut engine, timed, &[event(0, 10_000)]).header().cause, 0);
    other.stop(&mut engine, threads, None);
    client.stop(&mut engine, counting, None);
    started(client, &mut engine, 0, &[event(6, 5_000)]);
}

#[test]
fn a_refusal_of_windows_is_reported_and_leaves_nothing() {
    for status in [STATUS_WMI_ALREADY_ENABLED, STATUS_NOT_IMPLEMENTED, NtStatus::new(0xC000_000D)] {
        let machine = SimMachine::named("zen4-7700x", 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let beside = started(client, &mut engine, 0, &[event(6, 0)]);
        machine.refuse(Call::ConfigureThreadProfiling, status.number());
        let answer = start(client, &mut engine, THREADS, &[event(2, 0)]);
        assert_eq!((cause(answer), answer.status), (ErrorCode::ThreadProfilingTaken, status.number()));
        assert_eq!(answer.detail[0], u64::from(status));
        assert!(sessions(client, &mut engine).iter().all(|one| one.session == beside));
        assert!(machine.all().all(|cpu| cpu.model().enabled_counters().len() == 1), "the other session goes on");
        machine.refuse(Call::ConfigureThreadProfiling, 0);
        let session = started(client, &mut engine, THREADS, &[event(2, 0)]);
        assert!(session > beside + 1, "a number is not used again");
        engine.close(client.0);
        assert!(!machine.is_in_use());
    }
}

#[test]
fn a_start_that_fails_at_any_call_leaves_nothing() {
    for (call, wanted) in [
        (Call::ReserveCounters, ErrorCode::CountersTaken),
        (Call::PinThread, ErrorCode::NoSuchProcessor),
        (Call::ConfigureThreadProfiling, ErrorCode::ThreadProfilingTaken),
    ] {
        let machine = SimMachine::named("haswell-4710mq", 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        machine.refuse(call, 0xC000_0001);
        assert_eq!(cause(start(client, &mut engine, THREADS, &[event(2, 0)])), wanted, "{call:?}");
        assert!(!machine.is_in_use() && sessions(client, &mut engine).is_empty(), "{call:?}");
        assert!(machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()), "{call:?}");
        machine.refuse(call, 0);
        started(client, &mut engine, THREADS, &[event(2, 0)]);
    }
}

#[test]
fn no_session_for_threads_starts_while_the_machine_sleeps_and_one_goes_on_after_it() {
    let machine = SimMachine::named("zen4-7700x", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let first = started(client, &mut engine, 0, &[event(2, 0)]);
    client.stop(&mut engine, first, None);
    machine.fall_asleep(&engine);
    assert_eq!(cause(start(client, &mut engine, THREADS, &[event(2, 0)])), ErrorCode::Asleep);
    machine.wake(&engine);
    let session = started(client, &mut engine, THREADS, &[event(2, 0)]);
    machine.fall_asleep(&engine);
    machine.wake(&engine);
    machine.run(1, Mode::User, &|_| 8);
    assert_eq!(client.read(&mut engine, session)[1].count, 8);
    machine.fall_asleep(&engine);
    engine.close(client.0);
    assert_eq!(machine.thread_counters(), 0, "it can be ended while the machine sleeps");
    machine.wake(&engine);
    assert!(!machine.is_in_use());
}

#[test]
fn an_added_processor_gets_the_same_counters_before_other_sessions_do() {
    let machine = SimMachine::named("zen4-7700x", 3).with_active(1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    // It keeps the first counter from the session beside it on the first processor only.
    let keep = EventRequest { event: Event { counters: 1, ..Event::of(11) }, ..event(11, 0) };
    let alone = client.start_with(&mut engine, header(0, on(&[0])), &[keep]).header().detail[0];
    let beside = started(
        client,
        &mut engine,
        0,
        &[EventRequest { event: Event { counters: 0b110, ..Event::of(6) }, ..event(6, 0) }],
    );
    let session = started(client, &mut engine, THREADS, &[event(2, 0)]);
    let before = counters(&client.read(&mut engine, session), 1);
    machine.add_processor(&mut engine);
    machine.add_processor(&mut engine);
    let counts = client.read(&mut engine, session);
    assert_eq!((counters(&counts, 1), counts.len()), (before, 3));
    assert_eq!(client.read(&mut engine, beside).len(), 3);
    assert_eq!(client.read(&mut engine, alone).len(), 1);
}

#[test]
fn an_added_processor_that_cannot_count_ends_the_session() {
    for profiles in [false, true] {
        let machine = SimMachine::named("amd-legacy", 2).with_active(1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, THREADS, &[event(2, 0)]);
        machine.set_profiling_threads(profiles.into());
        // Another program uses a counter there.
        machine.processor(1).model().wrmsr(0xC001_0000, 1 << 22 | 0xC0).unwrap();
        machine.add_processor(&mut engine);
        let refused = group(client, &mut engine, session, 0).unwrap_err().0;
        if profiles {
            assert_eq!(refused, ErrorCode::NotReadable);
            let listed = sessions(client, &mut engine);
            assert_eq!(listed[0].flags, THREADS | flags::DETACHED, "its counters go on");
            machine.set_profiling_threads(0);
            engine.accumulate_counts();
        } else {
            assert_eq!(refused, ErrorCode::NoSuchSession);
        }
        assert_eq!((machine.thread_counters(), sessions(client, &mut engine).len()), (0, 0));
        assert!(!machine.is_in_use());
    }
}
