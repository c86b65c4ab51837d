//! Refused requests, which must change nothing.

use protocol::{
    ErrorCode, EventRequest, MAX_BUDGET, MAX_FREQUENCY, MAX_RING_BYTES, RING, SampleRecord, StartHeader, flags, modes,
};
use simulation::{Call, Client, SimMachine};

use super::scene::{SHORT, boards, engine, event, header, is_left_clean, on, started};

#[test]
fn invalid_sampling_requests_are_refused_with_their_cause_and_touch_no_register() {
    let plain = header(64, on(&[]));
    let good = event(2, SHORT);
    let cases: [(&str, StartHeader, EventRequest, ErrorCode); 16] = [
        ("shorter than the range", plain, event(2, 4_095), ErrorCode::BadInterval),
        ("longer than the range", plain, event(2, 0x8000_0000), ErrorCode::BadInterval),
        ("no ring", header(0, on(&[])), good, ErrorCode::BadRing),
        ("a small ring", header(RING.start() / 2, on(&[])), good, ErrorCode::BadRing),
        ("a large ring", header(RING.end() * 2, on(&[])), good, ErrorCode::BadRing),
        ("a crooked ring", header(100, on(&[])), good, ErrorCode::BadRing),
        ("a ring for nothing", StartHeader { budget: 0, ..plain }, event(2, 0), ErrorCode::BadRing),
        ("a budget for nothing", StartHeader { ring: 0, ..plain }, event(2, 0), ErrorCode::BadFrequency),
        ("all time", StartHeader { budget: MAX_BUDGET + 1, ..plain }, good, ErrorCode::BadFrequency),
        ("too often", plain, EventRequest { frequency: MAX_FREQUENCY + 1, ..good }, ErrorCode::BadFrequency),
        (
            "a frequency for nothing",
            StartHeader { ring: 0, budget: 0, ..plain },
            EventRequest { frequency: 1, ..event(2, 0) },
            ErrorCode::BadFrequency,
        ),
        ("detached", StartHeader { flags: flags::DETACHED, ..plain }, good, ErrorCode::BadFlags),
        ("a batch of no records", StartHeader { batch: 1, ..plain }, good, ErrorCode::BadBuffer),
        ("an interval that no timer has", plain, event(0, 1_000_001), ErrorCode::BadInterval),
        (
            "a timer with a frequency",
            plain,
            EventRequest { frequency: 100, ..event(0, 10_000) },
            ErrorCode::BadFrequency,
        ),
        ("a timer in one mode", plain, EventRequest { modes: modes::USER, ..event(0, 10_000) }, ErrorCode::BadModes),
    ];
    for (what, header, event, cause) in cases {
        let machine = SimMachine::named("intel-v2", 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let before = machine.processor(0).model().accesses();
        let answer = client.start_with(&mut engine, header, &[event]).header();
        assert_eq!(answer.cause, cause as u32, "{what}");
        assert_ne!(answer.status, 0, "{what}");
        assert_eq!(machine.processor(0).model().accesses(), before, "{what}");
        assert!(is_left_clean(&machine), "{what}");
        started(client, &mut engine, 64, on(&[]), &[good]);
    }
}

#[test]
fn rings_that_take_too_much_memory_are_refused_with_the_sum_of_all_sessions() {
    const RECORD: u64 = size_of::<SampleRecord>() as u64;
    let machine = SimMachine::named("intel-v2", 22);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let most = *RING.end();
    let refused = |engine: &mut _, processors: &[u32], wanted: u64| {
        let answer = client.start_with(engine, header(most, on(processors)), &[event(2, SHORT)]).header();
        assert_eq!((answer.cause, answer.detail), (ErrorCode::RingsTooLarge as u32, [wanted, MAX_RING_BYTES]));
    };
    let all: Vec<u32> = (0..22).collect();
    let ring = u64::from(most) * RECORD;
    refused(&mut engine, &all, 22 * ring);
    started(client, &mut engine, 65_536, on(&[]), &[event(2, SHORT)]);
    // Alone, these would be allowed.
    assert!(21 * ring <= MAX_RING_BYTES);
    refused(&mut engine, &all[1..], 21 * ring + 22 * 65_536 * RECORD);
    started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
}

#[test]
fn counters_that_do_not_interrupt_count_and_refuse_to_sample() {
    for machine in boards("pentium-p54c", 2) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let before = machine.processor(0).model().accesses();
        let answer = client.start_with(&mut engine, header(64, on(&[])), &[event(2, SHORT)]).header();
        assert_eq!((answer.cause, answer.source, answer.detail[0]), (ErrorCode::NotSampled as u32, 2, 1));
        assert_eq!(machine.processor(0).model().accesses(), before);
        assert!(is_left_clean(&machine));
        let counting = StartHeader { ring: 0, budget: 0, ..header(64, on(&[])) };
        assert_eq!(client.start_with(&mut engine, counting, &[event(2, 0)]).header().status, 0);
    }
}

#[test]
fn a_handler_that_the_hal_refuses_is_told_and_leaves_everything_as_it_was() {
    const UNSUCCESSFUL: u32 = 0xC000_0001;
    let machine = SimMachine::named("intel-v2", 2);
    machine.processor(0).model().wrmsr(0x38F, 0x5).unwrap();
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    machine.refuse(Call::BeginSampling, UNSUCCESSFUL);
    let events = [event(2, SHORT), event(6, SHORT), event(11, SHORT), event(10, SHORT)];
    let answer = client.start_with(&mut engine, header(64, on(&[])), &events).header();
    assert_eq!((answer.status, answer.cause), (UNSUCCESSFUL, ErrorCode::HandlerRefused as u32));
    assert_eq!(answer.detail[0], u64::from(UNSUCCESSFUL));
    assert_eq!(machine.processor(0).model().rdmsr(0x38F), Ok(0x5), "put back");
    assert!(is_left_clean(&machine));
    client.started(&mut engine, 0, &[2, 6, 11, 10]); // every counter is free
    engine.close(client.0);
    machine.refuse(Call::BeginSampling, 0);
    let client = Client::open(&mut engine, 1, 10);
    started(client, &mut engine, 64, on(&[]), &events);
}

#[test]
fn only_the_client_of_a_session_can_fetch_its_samples() {
    for machine in boards("intel-v2", 1) {
        let mut engine = engine(&machine);
        let (client, other) = (Client::open(&mut engine, 1, 10), Client::open(&mut engine, 2, 20));
        let counting = client.started(&mut engine, 0, &[2]);
        let sampling = started(client, &mut engine, 64, on(&[]), &[event(6, SHORT)]);
        let cause = |client: Client, engine: &mut _, session| {
            client.samples(engine, session, Some(100), 1).unwrap().header().cause
        };
        assert_eq!(cause(client, &mut engine, counting), ErrorCode::NothingSampled as u32);
        assert_eq!(cause(other, &mut engine, sampling), ErrorCode::NoSuchSession as u32);
        assert_eq!(cause(client, &mut engine, 999), ErrorCode::NoSuchSession as u32);
        assert_eq!(cause(client, &mut engine, protocol::DETACHED), ErrorCode::NothingSampled as u32);
    }
}

#[test]
fn at_most_eight_sessions_sample_and_a_stop_frees_a_subscriber_number() {
    for machine in boards("intel-v2", 1) {
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let sessions: Vec<u64> =
            (0..8).map(|_| started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)])).collect();
        let ninth = client.start_with(&mut engine, header(64, on(&[])), &[event(2, SHORT)]).header();
        assert_eq!((ninth.cause, ninth.detail[0]), (ErrorCode::TooManySessions as u32, 8));
        client.stop(&mut engine, sessions[3], None);
        started(client, &mut engine, 64, on(&[]), &[event(2, SHORT)]);
    }
}
