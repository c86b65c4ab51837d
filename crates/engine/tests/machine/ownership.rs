//! The engine reserves the counters before it accesses one, and takes no counter from other software unless forced.

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
    let reserved = |engine: &mut _| {
        let answer = client.ask(engine, Code::Info, &[], size_of::<InfoReply>());
        InfoReply::read_from_bytes(&answer.bytes).unwrap().reserved
    };
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
