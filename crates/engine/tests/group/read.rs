//! What a read of one processor returns, and why it is refused.

use engine::Engine;
use model::Mode;
use protocol::status::{STATUS_INFO_LENGTH_MISMATCH, STATUS_INVALID_DEVICE_STATE, STATUS_PRIVILEGE_NOT_HELD};
use protocol::{
    Code, ErrorCode, Event, GroupRequest, SamplesRequest, StartHeader, flags, group_flags, group_state, modes,
};
use simulation::{Client, SimMachine};
use zerocopy::IntoBytes;

use super::scene::{IDENTITIES, control_registers, engine, event, group, header, on, start, started};

const fn request(session: u64) -> GroupRequest {
    GroupRequest { session, flags: 0, reserved: 0 }
}

#[test]
fn a_read_returns_the_events_of_its_processor_in_the_order_of_the_request_between_two_times() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 3);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let sources = if name == "p6-coppermine" { vec![6, 2] } else { vec![11, 2, 6] };
        let events: Vec<_> = sources.iter().map(|source| event(*source, 0)).collect();
        let session = started(client, &mut engine, 0, &events);
        machine.set_pace(7);
        let mut before = None;
        for processor in [0, 2, 1] {
            machine.set_current(processor);
            machine.run(processor, Mode::User, &|_| 100 + u64::from(processor));
            let interruptions = machine.interruptions();
            let read = group(client, &mut engine, session, 0).unwrap();
            assert_eq!(read.header.processor, processor, "{name}");
            assert_eq!((read.header.count, read.header.status), (u32::try_from(events.len()).unwrap(), 0), "{name}");
            let counts = &read.counts[..events.len()];
            assert!(counts.iter().all(|count| *count == 100 + u64::from(processor)), "{name}: {counts:?}");
            assert!(read.counts[events.len()..].iter().all(|count| *count == 0), "{name}");
            assert_eq!(read.time_after - read.time_before, 7, "{name}: right before and right after");
            assert!(before < Some(read.time_before), "{name}");
            before = Some(read.time_after);
            assert_eq!(machine.interruptions(), interruptions, "{name}");
            let alone = client.read_group_on(&machine, engine.sampler(), processor, request(session)).unwrap();
            assert_eq!((alone.counts, alone.generation), (read.counts, read.generation), "{name}");
        }
        client.stop(&mut engine, session, None);
        assert_eq!(group(client, &mut engine, session, 0).unwrap_err().0, ErrorCode::NoSuchSession, "{name}");
        assert!(client.read_group_on(&machine, engine.sampler(), 0, request(session)).is_none(), "{name}");
    }
}

#[test]
fn a_read_has_what_rdpmc_returned_and_whether_programs_may_execute_it() {
    let machine = SimMachine::named("haswell-4710mq", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, flags::THREADS, &[event(11, 0), event(6, 0)]);
    let counters: Vec<u32> = client.read(&mut engine, session).iter().take(2).map(|record| record.counter).collect();
    machine.run(1, Mode::User, &|_| 70);
    machine.processor(1).set_user_rdpmc(true);
    for (processor, state) in [(0, 0), (1, group_state::USER_RDPMC)] {
        machine.set_current(processor);
        let read = group(client, &mut engine, session, 0).unwrap();
        let raw = |counter: &u32| machine.processor(processor).model().rdpmc(*counter).unwrap();
        assert_eq!(read.values[..2], counters.iter().map(raw).collect::<Vec<_>>());
        assert_eq!((read.state, read.counted), (state, 0b11), "CPU {processor}");
        assert!(read.values[2..].iter().all(|value| *value == 0));
    }
}

#[test]
fn each_count_is_that_of_its_own_event() {
    let machine = SimMachine::named("amd-legacy", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    // BranchMispredictions 0xC3, TotalIssues 0xC0, BranchInstructions 0xC2.
    let session = started(client, &mut engine, 0, &[event(11, 0), event(2, 0), event(6, 0)]);
    machine.run(0, Mode::User, &|selected| u64::from(selected.event));
    let counts = group(client, &mut engine, session, 0).unwrap().counts;
    assert_eq!(counts[..3], [0xC3, 0xC0, 0xC2]);
}

#[test]
fn only_the_handle_of_a_session_reads_it_and_any_handle_a_detached_one() {
    let machine = SimMachine::named("haswell-4710mq", 1);
    let mut engine = engine(&machine);
    let [client, other] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
    let own = started(client, &mut engine, 0, &[event(2, 0)]);
    let detached = started(client, &mut engine, flags::DETACHED, &[event(6, 0)]);
    for (handle, session, is_read) in [
        (client, own, true),
        (other, own, false),
        (client, detached, true),
        (other, detached, true),
        (client, own + 5, false),
        (client, protocol::DETACHED, false),
    ] {
        let alone = handle.read_group_on(&machine, engine.sampler(), 0, request(session));
        assert_eq!(alone.is_some(), is_read, "{handle:?} {session}");
        match group(handle, &mut engine, session, 0) {
            Ok(read) => assert!(is_read && read.header.count == 1, "{handle:?} {session}"),
            Err((cause, reply)) => {
                assert!(!is_read, "{handle:?} {session}");
                assert_eq!((cause, reply.detail), (ErrorCode::NoSuchSession, [session, 0]));
            }
        }
    }
    engine.close(client.0);
    assert!(other.read_group_on(&machine, engine.sampler(), 0, request(own)).is_none());
    assert!(client.read_group_on(&machine, engine.sampler(), 0, request(own)).is_none());
    assert!(group(other, &mut engine, detached, 0).is_ok(), "it outlives its handle");
    let again = Client::open(&mut engine, 1, 10);
    let next = started(again, &mut engine, 0, &[event(2, 0)]);
    assert!(next > detached, "no number is used again");
    assert!(group(again, &mut engine, own, 0).is_err());
}

#[test]
fn the_number_of_a_session_that_has_ended_reads_nothing_of_the_next_one() {
    let machine = SimMachine::named("amd-legacy", 1);
    let mut engine = engine(&machine);
    let [client, other] = [1, 2].map(|handle| Client::open(&mut engine, handle, 10));
    let ended = started(client, &mut engine, 0, &[event(2, 0)]);
    client.stop(&mut engine, ended, None);
    // It has the same counter, and cannot be read so.
    started(other, &mut engine, 0, &[event(2, 5_000)]);
    assert!(client.read_group_on(&machine, engine.sampler(), 0, request(ended)).is_none());
}

#[test]
fn a_session_that_cannot_be_read_so_is_refused_by_the_processor() {
    type Start = fn(Client, &mut Engine<&SimMachine>) -> u64;
    let on_one: Start = |client, engine| {
        let answer = client.start_with(engine, header(0, on(&[1])), &[event(2, 0)]).header();
        answer.detail[0]
    };
    let sampled: Start = |client, engine| started(client, engine, 0, &[event(2, 5_000), event(6, 0)]);
    let timed: Start = |client, engine| started(client, engine, 0, &[event(0, 0), event(6, 0)]);
    let turns: Start = |client, engine| {
        let sources = [2, 6, 11, 19, 10, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22];
        let there: Vec<_> = sources
            .into_iter()
            .filter(|source| engine.sampler().hal().startable(pmu::Source(*source)).is_ok())
            .map(|source| event(source, 0))
            .collect();
        assert!(there.len() > 4, "{there:?}");
        started(client, engine, flags::MULTIPLEX, &there)
    };
    let partly: Start = |client, engine| {
        let session = started(client, engine, 0, &[event(2, 0), event(6, 0)]);
        client.stop(engine, session, Some(6));
        session
    };
    let many: Start = |client, engine| started(client, engine, 0, &vec![event(0, 0); 17]);
    for (what, start) in [
        ("on another processor", on_one),
        ("sampled", sampled),
        ("measured time", timed),
        ("turns", turns),
        ("stopped in part", partly),
        ("too many events", many),
    ] {
        let machine = SimMachine::named("zen3-5950x", 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = start(client, &mut engine);
        let before = machine.processor(0).model().accesses();
        let (cause, reply) = group(client, &mut engine, session, 0).unwrap_err();
        assert_eq!((cause, reply.processor, reply.detail), (ErrorCode::NotReadable, 0, [session, 0]), "{what}");
        assert_eq!(machine.processor(0).model().accesses(), before, "{what}: nothing was touched");
        assert!(client.read_group_on(&machine, engine.sampler(), 0, request(session)).is_none(), "{what}");
    }
}

#[test]
fn slots_and_metrics_are_not_read_as_a_group() {
    let machine = SimMachine::named("sapphire-rapids-2475x", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let slots = pmu::source::RawEvent::new().with_umask(0x04).source().0;
    let answer = start(client, &mut engine, 0, &[event(slots, 0)]);
    assert_eq!(answer.cause, 0, "{answer:?}");
    assert_eq!(group(client, &mut engine, answer.detail[0], 0).unwrap_err().0, ErrorCode::NotReadable);
}

#[test]
fn an_event_of_the_other_core_type_counts_zero() {
    let machine = SimMachine::named("intel-hybrid", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let of_type = |core_type| protocol::EventRequest { event: Event { core_type, ..Event::of(2) }, ..event(2, 0) };
    let session = started(client, &mut engine, 0, &[of_type(0x40), of_type(0x20)]);
    for processor in [0, 1] {
        machine.set_current(processor);
        machine.run(processor, Mode::User, &|_| 30);
        let read = group(client, &mut engine, session, 0).unwrap();
        let (counts, own) = (&read.counts[..2], processor as usize);
        assert_eq!((counts[own], counts[1 - own], read.header.count), (30, 0, 2), "{processor}");
    }
}

#[test]
fn an_added_processor_is_read_as_soon_as_the_session_is_there() {
    let machine = SimMachine::named("zen4-7700x", 2).with_active(1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, 0, &[event(2, 0)]);
    assert!(client.read_group_on(&machine, engine.sampler(), 1, request(session)).is_none());
    machine.add_processor(&mut engine);
    machine.run(1, Mode::User, &|_| 5);
    assert_eq!(client.read_group_on(&machine, engine.sampler(), 1, request(session)).unwrap().counts[0], 5);
}

#[test]
fn while_the_machine_sleeps_a_read_touches_nothing_and_is_refused_and_then_the_generation_differs() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 0, &[event(2, 0)]);
        machine.run(0, Mode::User, &|_| 9);
        let before = group(client, &mut engine, session, 0).unwrap();
        machine.fall_asleep(&engine);
        assert!(client.read_group_on(&machine, engine.sampler(), 0, request(session)).is_none(), "{name}");
        assert_eq!(group(client, &mut engine, session, 0).unwrap_err().0, ErrorCode::Asleep, "{name}");
        machine.wake(&engine);
        machine.run(0, Mode::User, &|_| 4);
        let after = group(client, &mut engine, session, 0).unwrap();
        assert_ne!(after.generation, before.generation, "{name}");
        assert_eq!([before.counts[0], after.counts[0]], [9, 13], "{name}");
        assert_eq!(group(client, &mut engine, session, 0).unwrap().generation, after.generation, "{name}");
    }
}

#[test]
fn sizes_flags_and_the_version_are_checked_before_a_read() {
    let machine = SimMachine::named("amd-legacy", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, 0, &[event(2, 0)]);
    let valid = request(session);
    for (bytes, output, status) in [
        (&valid.as_bytes()[..8], 336, STATUS_INFO_LENGTH_MISMATCH),
        (valid.as_bytes(), 335, protocol::status::STATUS_BUFFER_TOO_SMALL),
        (SamplesRequest { session, wait: 0, reserved: 1 }.as_bytes(), 48, protocol::status::STATUS_BUFFER_TOO_SMALL),
    ] {
        let answer = client.ask(&mut engine, Code::ReadGroup, bytes, output);
        assert_eq!((answer.completion.status, answer.completion.information), (status, 0));
    }
    for wrong in [GroupRequest { flags: 2, ..valid }, GroupRequest { reserved: 1, ..valid }] {
        assert!(client.read_group_on(&machine, engine.sampler(), 0, wrong).is_none());
        let answer = client.ask(&mut engine, Code::ReadGroup, wrong.as_bytes(), 336).header();
        assert_eq!(answer.cause, ErrorCode::BadFlags as u32, "{wrong:?}");
        assert_eq!(answer.detail[0], u64::from(wrong.flags) | u64::from(wrong.reserved) << 32);
    }
    let stranger = Client(engine::ClientId(77));
    let refused = stranger.ask(&mut engine, Code::ReadGroup, valid.as_bytes(), 336).completion.status;
    assert_eq!(refused, STATUS_PRIVILEGE_NOT_HELD);
    engine.open(stranger.0, 1);
    let refused = stranger.ask(&mut engine, Code::ReadGroup, valid.as_bytes(), 336).completion.status;
    assert_eq!(refused, STATUS_INVALID_DEVICE_STATE, "it has not said hello");
    assert!(stranger.read_group_on(&machine, engine.sampler(), 0, valid).is_none());
}

#[test]
fn a_comparison_marks_the_count_and_changes_the_generation() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, 0, &[event(2, 0)]);
        machine.run(0, Mode::User, &|_| 9);
        let before = group(client, &mut engine, session, group_flags::COMPARE).unwrap();
        let same = group(client, &mut engine, session, group_flags::COMPARE).unwrap();
        assert_eq!(same.generation, before.generation, "{name}: nothing was changed");
        for register in control_registers(name) {
            machine.processor(0).write_foreign(register, 0);
        }
        machine.run(0, Mode::User, &|_| 9);
        let found = group(client, &mut engine, session, group_flags::COMPARE).unwrap();
        assert_ne!(found.generation, before.generation, "{name}");
        let counts = client.read(&mut engine, session);
        assert_ne!(counts[0].disturbed_register, 0, "{name}");
    }
}

#[test]
fn the_modes_of_an_event_apply() {
    let machine = SimMachine::named("skylake-6600k", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let header = StartHeader::EMPTY;
    let each = [modes::USER, modes::KERNEL].map(|modes| protocol::EventRequest { modes, ..event(6, 0) });
    let session = client.start_with(&mut engine, header, &each).header().detail[0];
    let [_, kernel] = client.read(&mut engine, session)[..] else { panic!("two events") };
    machine.run(0, Mode::User, &|_| 10);
    machine.run(0, Mode::Kernel, &|_| 3);
    let before = machine.between(0, kernel.counter);
    let [in_user, in_kernel, ..] = group(client, &mut engine, session, 0).unwrap().counts;
    assert_eq!(in_user, 10);
    assert!((3 + before..=3 + machine.between(0, kernel.counter)).contains(&in_kernel));
}
