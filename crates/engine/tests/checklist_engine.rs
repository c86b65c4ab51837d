//! Item 29 of the checklist in the tests of `pmu` (invalid filter requests in suites for virtual PMUs), applied to the
//! requests of this driver: invalid actions, flags and counts.

use engine::{Completion, Engine};
use protocol::status::{
    STATUS_INFO_LENGTH_MISMATCH, STATUS_INVALID_DEVICE_REQUEST, STATUS_INVALID_PARAMETER, STATUS_SUCCESS,
};
use protocol::{
    Code, ErrorCode, EventRequest, MAX_EVENTS, ProcessorSet, REQUESTS, SessionEvent, StartHeader, flags, modes,
};
use simulation::{Client, SimMachine};

const EVENT: (u64, u32) = (2, modes::BOTH);

/// Checks that a refusal left no session and accessed no register.
fn nothing_happened(engine: &mut Engine<&SimMachine>, client: Client, machine: &SimMachine) {
    assert_eq!(client.tell::<_, SessionEvent>(engine, Code::ListSessions), []);
    for cpu in machine.all() {
        let accesses = cpu.model().accesses();
        assert_eq!((accesses.rdmsr, accesses.wrmsr, accesses.rdpmc), (0, 0, 0));
    }
}

#[test]
fn d29_an_action_that_does_not_exist_is_refused() {
    let machine = SimMachine::named("intel-v2", 2);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let known = |code: u32| REQUESTS.iter().any(|spec| spec.code as u32 == code);
    for function in 0..0x1000_u32 {
        // Each function code with each method and access.
        for rest in 0..16_u32 {
            let code = Code::Start as u32 & 0xFFFF_0000 | (rest >> 2) << 14 | function << 2 | rest & 3;
            if !known(code) {
                let refused = Completion { status: STATUS_INVALID_DEVICE_REQUEST, information: 0 };
                assert_eq!(client.ask_raw(&mut engine, code, &[0; 280], 64).completion, refused, "{code:#x}");
            }
        }
    }
    nothing_happened(&mut engine, client, &machine);
}

#[test]
fn d29_every_flag_that_does_not_exist_is_refused_alone_and_with_one_that_does() {
    let machine = SimMachine::named("intel-v2", 2);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    for bit in (0..32).filter(|bit| flags::ALL >> bit & 1 == 0) {
        for wanted in [1 << bit, 1 << bit | flags::DETACHED] {
            let header = client.start(&mut engine, wanted, ProcessorSet::EMPTY, &[EVENT]).header();
            assert_eq!(
                (header.status, header.cause),
                (STATUS_INVALID_PARAMETER.number(), ErrorCode::BadFlags as u32),
                "{bit}"
            );
            assert_eq!(header.detail, [u64::from(wanted), 0]);
        }
    }
    for bit in (0..32).filter(|bit| modes::BOTH >> bit & 1 == 0) {
        for wanted in [1 << bit, 1 << bit | modes::BOTH] {
            let header = client.start(&mut engine, 0, ProcessorSet::EMPTY, &[EVENT, (2, wanted)]).header();
            assert_eq!(
                (header.status, header.cause),
                (STATUS_INVALID_PARAMETER.number(), ErrorCode::BadModes as u32),
                "{bit}"
            );
        }
    }
    nothing_happened(&mut engine, client, &machine);
}

#[test]
fn d29_a_count_of_events_that_is_zero_or_too_large_or_not_whole_is_refused() {
    let machine = SimMachine::named("intel-v2", 2);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let (head, entry) = (size_of::<StartHeader>(), size_of::<EventRequest>());
    for count in [0, MAX_EVENTS + 1, MAX_EVENTS + 2, 2 * MAX_EVENTS, 4_096] {
        let answer = client.start(&mut engine, 0, ProcessorSet::EMPTY, &vec![EVENT; count]);
        let refused = Completion { status: STATUS_INFO_LENGTH_MISMATCH, information: 0 };
        assert_eq!(answer.completion, refused, "{count}");
    }
    for length in (0..head + 3 * entry).filter(|length| *length <= head || !(length - head).is_multiple_of(entry)) {
        let answer = client.ask(&mut engine, Code::Start, &vec![0; length], 4_096);
        let refused = Completion { status: STATUS_INFO_LENGTH_MISMATCH, information: 0 };
        assert_eq!(answer.completion, refused, "{length}");
    }
    // The maximum number of events is accepted by the parser, but exceeds the counters.
    let answer = client.start(&mut engine, 0, ProcessorSet::EMPTY, &[EVENT; MAX_EVENTS]);
    assert_eq!(answer.completion.status, STATUS_SUCCESS);
    assert_eq!(answer.header().cause, ErrorCode::NoFreeCounter as u32);
    nothing_happened(&mut engine, client, &machine);
}

#[test]
fn d29_a_processor_that_does_not_exist_is_refused_wherever_it_stands() {
    let machine = SimMachine::named("intel-v2", 2);
    let mut engine = Engine::new(&machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    for processor in (2..130).chain([511, 512, 1_024, 2_047]) {
        let mut wanted = ProcessorSet::EMPTY;
        assert!(wanted.insert(0) && wanted.insert(processor));
        let header = client.start(&mut engine, 0, wanted, &[EVENT]).header();
        assert_eq!(
            (header.status, header.cause),
            (STATUS_INVALID_PARAMETER.number(), ErrorCode::NoSuchProcessor as u32)
        );
        assert_eq!(header.processor, processor);
    }
    nothing_happened(&mut engine, client, &machine);
}

#[test]
fn d29_every_request_survives_every_length_of_nothing_but_ones() {
    for name in ["intel-v2", "amd-legacy", "intel-no-leaf-a"] {
        let machine = SimMachine::named(name, 1);
        let mut engine = Engine::new(&machine, [0; 4]).unwrap();
        let client = Client::open(&mut engine, 1, 10);
        for spec in REQUESTS.iter().filter(|spec| spec.code != Code::Hello) {
            for length in 0..400 {
                client.ask(&mut engine, spec.code, &vec![0xFF; length], 200);
            }
        }
        assert_eq!(client.tell::<_, SessionEvent>(&mut engine, Code::ListSessions), [], "{name}");
        let info = size_of::<protocol::InfoReply>();
        assert_eq!(client.ask(&mut engine, Code::Info, &[], info).completion.information, info, "{name}: it goes on");
    }
}
