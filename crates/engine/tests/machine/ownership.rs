//! The engine reserves the counters before it accesses one, and takes no counter from other software unless forced.

use engine::{Engine, Platform};
use model::Accesses;
use protocol::{Code, ErrorCode, InfoReply, ProcessorSet, RegisterInUse, SessionEvent, flags};
use simulation::{Call, Client, SimMachine};
use zerocopy::FromBytes;

use super::scene::{IDENTITIES, engine, event, header, on, run, started};

const TAKEN: u32 = 0xC000_009A;
const BUSY: u32 = 0x8000_0011;

/// EN of a select register.
const EN: u64 = 1 << 22;

fn first_select(name: &str) -> u32 {
    if name == "amd-legacy" { 0xC001_0000 } else { 0x186 }
}

fn accesses(machine: &SimMachine) -> Vec<Accesses> {
    machine.all().map(|cpu| cpu.model().accesses()).collect()
}

#[test]
fn counters_that_the_hal_does_not_reserve_are_not_touched() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        for status in [TAKEN, BUSY, 0xC000_00BB] {
            machine.refuse(Call::ReserveCounters, status);
            for force in [0, flags::FORCE] {
                let header = client.start_with(&mut engine, header(force, false, on(&[])), &[event(2, 0)]).header();
                assert_eq!((header.status, header.cause), (status, ErrorCode::CountersTaken as u32), "{name}");
                assert_eq!(header.detail, [u64::from(status), 0], "{name}");
            }
            assert!(!machine.is_in_use());
            assert_eq!(accesses(&machine), vec![Accesses::default(); 2], "{name}");
            assert_eq!(client.tell::<_, SessionEvent>(&mut engine, Code::ListSessions), [], "{name}");
        }
        // ProfileTime needs no counter.
        let timed = client.started(&mut engine, 0, &[0]);
        client.stop(&mut engine, timed, None);
        machine.refuse(Call::ReserveCounters, 0);
        client.started(&mut engine, 0, &[2]);
    }
}

#[test]
fn the_counters_are_reserved_from_the_first_session_that_takes_one_to_the_last() {
    let machine = SimMachine::named("intel-v2", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let reserved = |engine: &mut _| reservation(client, engine);
    let timed = client.started(&mut engine, 0, &[0]);
    assert_eq!(reserved(&mut engine), 0);
    let (first, second) = (client.started(&mut engine, 0, &[2]), client.started(&mut engine, 0, &[6]));
    client.stop(&mut engine, first, None);
    assert_eq!(reserved(&mut engine), 1);
    client.stop(&mut engine, second, None);
    assert_eq!(reserved(&mut engine), 0);
    client.stop(&mut engine, timed, None);
    assert!(!machine.is_in_use());
}

fn reservation(client: Client, engine: &mut Engine<&SimMachine>) -> u32 {
    let answer = client.ask(engine, Code::Info, &[], size_of::<InfoReply>());
    InfoReply::read_from_bytes(&answer.bytes).unwrap().reserved
}

#[test]
fn a_reservation_waits_for_the_previous_owner_and_not_for_ever() {
    const MILLISECOND: u64 = 10_000;
    // The last answer comes late, because other programs have the processor.
    for (busy, answer, is_reserved) in
        [(0, 0, true), (1, 0, true), (200, 0, true), (300, 0, false), (100_000, 0, false), (200, 260, true)]
    {
        let machine = SimMachine::named("intel-v2", 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        machine.be_busy_for(busy * MILLISECOND, answer * MILLISECOND);
        let begin = (&machine).clock().0;
        let header = client.start_with(&mut engine, header(0, false, on(&[])), &[event(2, 0)]).header();
        let outcome = if is_reserved { (0, 0) } else { (BUSY, ErrorCode::CountersTaken as u32) };
        assert_eq!((header.status, header.cause), outcome, "{busy} ms");
        let waited = ((&machine).clock().0 - begin) / MILLISECOND;
        let least = busy.min(250).max(answer);
        assert!((least..least + 20).contains(&waited), "{busy} ms: {waited} ms");
        assert!(machine.busy_answers() <= waited / 10 + 1, "{busy} ms: {} answers", machine.busy_answers());
        assert_eq!(machine.is_in_use(), is_reserved, "{busy} ms");
    }
    // What no owner was asked for does not change by waiting.
    let machine = SimMachine::named("intel-v2", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    machine.refuse(Call::ReserveCounters, TAKEN);
    let begin = (&machine).clock();
    assert_eq!(client.start_with(&mut engine, header(0, false, on(&[])), &[event(2, 0)]).header().status, TAKEN);
    assert_eq!((&machine).clock(), begin);
}

#[test]
fn a_reservation_that_the_hal_does_not_free_is_reported_used_again_and_freed_later() {
    const REFUSED: u32 = 0xC000_000D;
    let machine = SimMachine::named("intel-v2", 3).with_active(2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    for later in [Engine::accumulate_counts, Engine::shut_down, Engine::before_processor] {
        machine.refuse(Call::FreeCounters, REFUSED);
        for _ in 0..2 {
            let session = client.started(&mut engine, 0, &[2]);
            assert_eq!(reservation(client, &mut engine), 1);
            client.stop(&mut engine, session, None);
            assert_eq!(reservation(client, &mut engine), REFUSED);
        }
        later(&mut engine);
        assert_eq!(reservation(client, &mut engine), REFUSED);
        machine.refuse(Call::FreeCounters, 0);
        later(&mut engine);
        assert_eq!(reservation(client, &mut engine), 0);
        assert!(!machine.is_in_use());
    }
}

#[test]
fn the_counters_are_reserved_anew_when_a_processor_is_added() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 4).with_active(1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        machine.fail_to_add_processor(&mut engine);
        assert!(!machine.is_in_use(), "{name}: no session");
        let session = client.started(&mut engine, 0, &[2]);
        machine.fail_to_add_processor(&mut engine);
        assert_eq!(reservation(client, &mut engine), 1, "{name}");
        machine.add_processor(&mut engine);
        assert_eq!(client.read(&mut engine, session).len(), 2, "{name}");
        assert_eq!(reservation(client, &mut engine), 1, "{name}");

        // Another driver is faster.
        machine.refuse(Call::ReserveCounters, TAKEN);
        machine.add_processor(&mut engine);
        assert_eq!(reservation(client, &mut engine), TAKEN, "{name}");
        run(&machine, &engine, 0, 9);
        let counts: Vec<u64> = client.read(&mut engine, session).iter().map(|one| one.count).collect();
        assert_eq!(counts, [9, 0], "{name}: it counts on, and not on the new processor");
        let refused = client.start_with(&mut engine, header(0, false, on(&[2])), &[event(2, 0)]).header();
        assert_eq!(refused.status, TAKEN, "{name}");
        machine.refuse(Call::ReserveCounters, 0);
        let other = client.started(&mut engine, 0, &[6]);
        assert_eq!(reservation(client, &mut engine), 1, "{name}");

        // Sessions may end and start while a processor is being added.
        engine.before_processor();
        assert_eq!(reservation(client, &mut engine), 0, "{name}");
        client.stop(&mut engine, session, None);
        let third = client.started(&mut engine, 0, &[11]);
        engine.add_no_processor();
        assert_eq!(reservation(client, &mut engine), 1, "{name}");
        for session in [other, third] {
            client.stop(&mut engine, session, None);
        }
        assert!(!machine.is_in_use(), "{name}");
    }
}

#[test]
fn nothing_is_reserved_while_a_processor_is_being_added() {
    let machine = SimMachine::named("intel-v2", 3).with_active(2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    // The first session starts meanwhile, or all sessions end and another starts.
    for sessions in [1, 2] {
        engine.before_processor();
        for _ in 1..sessions {
            let session = client.started(&mut engine, 0, &[2]);
            client.stop(&mut engine, session, None);
        }
        let session = client.started(&mut engine, 0, &[2]);
        assert_eq!(reservation(client, &mut engine), 0);
        engine.add_no_processor();
        assert_eq!(reservation(client, &mut engine), 1);
        client.stop(&mut engine, session, None);
        assert!(!machine.is_in_use());
    }
    // The same where the HAL had refused to reserve the counters again, and a session begins on another processor.
    let first = client.start_with(&mut engine, header(0, false, on(&[0])), &[event(2, 0)]).header();
    assert_eq!(first.status, 0);
    machine.refuse(Call::ReserveCounters, TAKEN);
    machine.fail_to_add_processor(&mut engine);
    assert_eq!(reservation(client, &mut engine), TAKEN);
    machine.refuse(Call::ReserveCounters, 0);
    engine.before_processor();
    let other = client.started(&mut engine, 0, &[6]);
    assert_eq!(reservation(client, &mut engine), 0);
    engine.add_no_processor();
    assert_eq!(reservation(client, &mut engine), 1);
    for session in [first.detail[0], other] {
        client.stop(&mut engine, session, None);
    }
    assert!(!machine.is_in_use());
}

#[test]
fn a_counter_enabled_elsewhere_is_reported_and_taken_only_by_force() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 3);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let (register, theirs) = (first_select(name) + 1, EN | 0x3_00C0);
        machine.processor(1).model().wrmsr(register, theirs).unwrap();
        let before = accesses(&machine);
        let refused = client.start_with(&mut engine, header(0, false, on(&[])), &[event(2, 0)]).header();
        assert_eq!((refused.status, refused.cause), (BUSY, ErrorCode::ForeignUse as u32), "{name}");
        assert_eq!(refused.processor, 1, "{name}");
        let in_use = RegisterInUse::from_detail(refused.detail[0]);
        assert_eq!((in_use.counter, in_use.number, refused.detail[1]), (1, register, theirs), "{name}");
        for (before, after) in before.iter().zip(accesses(&machine)) {
            assert_eq!(after.wrmsr, before.wrmsr, "{name}: nothing was written");
        }
        assert!(!machine.is_in_use(), "{name}");

        // Other software uses no counter of the other processors.
        let beside = started(client, &mut engine, on(&[0, 2]), &[event(2, 0)]);
        assert_eq!(machine.processor(1).model().rdmsr(register), Ok(theirs), "{name}: no session asked for that one");
        client.stop(&mut engine, beside, None);

        let forced = client.start_with(&mut engine, header(flags::FORCE, false, ProcessorSet::EMPTY), &[event(2, 0)]);
        assert_eq!(forced.header().status, 0, "{name}");
        run(&machine, &engine, 1, 100);
        let counts = client.read(&mut engine, forced.header().detail[0]);
        assert_eq!(counts.iter().map(|one| one.count).collect::<Vec<_>>(), [0, 100, 0], "{name}");
        client.stop(&mut engine, forced.header().detail[0], None);
        assert_eq!(machine.processor(1).model().rdmsr(register), Ok(0), "{name}: what was taken is not given back");
    }
}

#[test]
fn a_processor_that_no_session_is_on_is_not_touched() {
    for name in IDENTITIES {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, on(&[1]), &[event(2, 0), event(6, 4_096)]);
        run(&machine, &engine, 1, 10_000);
        client.stop(&mut engine, session, None);
        assert_eq!(accesses(&machine)[0], Accesses::default(), "{name}");
    }
}
