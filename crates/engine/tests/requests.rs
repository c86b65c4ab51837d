//! Requests: valid and refused ones, and that a refusal changes nothing.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use engine::{ClientId, Completion, Engine};
use pmu::Support;
use pmu::ibs::{MissingFeature, Summary};
use protocol::status::{
    STATUS_BUFFER_TOO_SMALL, STATUS_INFO_LENGTH_MISMATCH, STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_DEVICE_REQUEST,
    STATUS_INVALID_DEVICE_STATE, STATUS_INVALID_PARAMETER, STATUS_NOT_FOUND, STATUS_NOT_SUPPORTED,
    STATUS_PRIVILEGE_NOT_HELD, STATUS_REVISION_MISMATCH, STATUS_SUCCESS,
};
use protocol::{
    Code, ErrorCode, Hello, HelloReply, InfoReply, IntervalRequest, PROTOCOL_VERSION, ProcessorSet, REQUESTS,
    RequestSpec, SessionEvent, Size, SourceRecord, SourceRequest, flags, modes,
};
use simulation::{Client, SimMachine};
use zerocopy::{FromBytes, IntoBytes};

const VERSION: engine::Version = [1, 2, 3, 0];

fn engine(machine: &SimMachine) -> Engine<&SimMachine> {
    Engine::new(machine, VERSION).unwrap()
}

const INFO: usize = size_of::<InfoReply>();

fn smallest_input(spec: &RequestSpec) -> usize {
    match spec.input {
        Size::Exactly(size) | Size::AtLeast(size) => size,
        Size::Entries { head, entry, .. } => head + entry,
    }
}

fn smallest_output(spec: &RequestSpec) -> usize {
    match spec.output {
        Size::Exactly(size) | Size::AtLeast(size) | Size::Entries { head: size, .. } => size,
    }
}

#[test]
fn every_length_that_the_table_does_not_admit_is_refused_by_its_own_status() {
    let machine = SimMachine::named("amd-legacy", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    for spec in &REQUESTS {
        let right = smallest_output(spec);
        for length in (0..=smallest_input(spec) + 40).filter(|length| !spec.input.admits(*length)) {
            let answer = client.ask(&mut engine, spec.code, &vec![0; length], right);
            let refused = Completion { status: STATUS_INFO_LENGTH_MISMATCH, information: 0 };
            assert_eq!(answer.completion, refused, "{} input {length}", spec.name);
        }
        for length in 0..right {
            let answer = client.ask(&mut engine, spec.code, &vec![0; smallest_input(spec)], length);
            let refused = Completion { status: STATUS_BUFFER_TOO_SMALL, information: 0 };
            assert_eq!(answer.completion, refused, "{} output {length}", spec.name);
        }
    }
}

#[test]
fn a_code_that_is_no_request_is_refused() {
    let machine = SimMachine::named("amd-legacy", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    for spec in &REQUESTS {
        for code in [0, u32::MAX, spec.code as u32 + 1, spec.code as u32 ^ 1 << 14, spec.code as u32 ^ 1 << 31] {
            let refused = Completion { status: STATUS_INVALID_DEVICE_REQUEST, information: 0 };
            assert_eq!(client.ask_raw(&mut engine, code, &[0; 300], 300).completion, refused, "{code:#x}");
        }
    }
}

#[test]
fn nothing_is_served_before_the_versions_agree() {
    let machine = SimMachine::named("amd-legacy", 1);
    let mut engine = engine(&machine);
    let client = Client(ClientId(1));
    let refused = |engine: &mut Engine<&SimMachine>, but: Option<Code>, status| {
        for spec in REQUESTS.iter().filter(|spec| Some(spec.code) != but) {
            let answer = client.ask(engine, spec.code, &vec![0; smallest_input(spec)], 4096);
            assert_eq!(answer.completion, Completion { status, information: 0 }, "{}", spec.name);
        }
    };
    let all_refused =
        |engine: &mut Engine<&SimMachine>| refused(engine, Some(Code::Hello), STATUS_INVALID_DEVICE_STATE);
    refused(&mut engine, None, STATUS_PRIVILEGE_NOT_HELD); // not open, so even Hello is refused
    assert_eq!(engine.open(client.0, 10), STATUS_SUCCESS);
    all_refused(&mut engine);
    for version in [0, PROTOCOL_VERSION + 1, u32::MAX] {
        let answer = client.ask(&mut engine, Code::Hello, Hello { version, reserved: 0 }.as_bytes(), 72);
        let reply = HelloReply::read_from_bytes(&answer.bytes).unwrap();
        assert_eq!(reply.header.status, STATUS_REVISION_MISMATCH.number());
        assert_eq!(reply.header.cause, ErrorCode::VersionMismatch as u32);
        assert_eq!(reply.header.detail, [u64::from(version), u64::from(PROTOCOL_VERSION)]);
        all_refused(&mut engine);
    }
    let hello = Hello { version: PROTOCOL_VERSION, reserved: 0 };
    let reply = client.ask(&mut engine, Code::Hello, hello.as_bytes(), 72).bytes;
    let reply = HelloReply::read_from_bytes(&reply).unwrap();
    assert_eq!((reply.header.status, reply.protocol, reply.driver), (0, PROTOCOL_VERSION, VERSION));
    assert_eq!(client.ask(&mut engine, Code::Info, &[], INFO).completion.information, INFO);
    // What was agreed holds: the driver serves ReadGroup without the engine, whatever another Hello says.
    let other = Hello { version: PROTOCOL_VERSION + 1, reserved: 0 };
    let reply = client.ask(&mut engine, Code::Hello, other.as_bytes(), 72).bytes;
    let reply = HelloReply::read_from_bytes(&reply).unwrap();
    assert_eq!(reply.header.cause, ErrorCode::VersionMismatch as u32);
    assert_eq!(client.ask(&mut engine, Code::Info, &[], INFO).completion.information, INFO);
    engine.close(client.0);
    refused(&mut engine, None, STATUS_PRIVILEGE_NOT_HELD);
}

#[test]
fn a_reply_never_contains_old_bytes_of_the_buffer() {
    let machine = SimMachine::named("intel-v1", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let answer = client.ask(&mut engine, Code::ListSources, &[], 1 << 14);
    let records: Vec<SourceRecord> = answer.records();
    assert_eq!(answer.bytes.len(), 48 + records.len() * 144);
    assert!(!answer.bytes.chunks(4).any(|bytes| bytes == [0xEE; 4]));
}

#[test]
fn a_list_without_room_reports_its_total_and_only_whole_records() {
    let machine = SimMachine::named("amd-legacy", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    for (output, count) in [(48, 0), (191, 0), (192, 1), (335, 1), (336, 2), (1 << 16, 176)] {
        let answer = client.ask(&mut engine, Code::ListSources, &[], output);
        let header = answer.header();
        assert_eq!((header.count, header.total), (count, 176), "{output}");
        assert_eq!(answer.completion.information, 48 + 144 * count as usize);
    }
}

#[test]
fn info_reports_what_cpuid_enumerates() {
    for identity in cpuid_dumps::all() {
        let machine = SimMachine::new(identity, 3);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let info = client.ask(&mut engine, Code::Info, &[], INFO).bytes;
        let info = InfoReply::read_from_bytes(&info).unwrap();
        let expected = identity.expected;
        let interface = ["Default", "Emon", "Amd64", "NetBurst", "P6", "Pentium"];
        assert_eq!(interface[info.interface as usize], expected.interface, "{}", identity.name);
        assert_eq!(interface[info.windows10 as usize], expected.windows10, "{}", identity.name);
        assert_eq!((info.counters, info.width), (expected.counters.into(), expected.width.into()));
        assert_eq!((info.processors, info.maximum_processors), (3, 3));
        let indexes = expected.counters + identity.metrics().map_or(0, |metrics| 1 + metrics);
        assert_eq!(info.state_bytes, 3 * 8 * u64::from(indexes));
        let [_, b, c, d] = identity.cpuid().cpuid(0, 0);
        assert_eq!(info.vendor[..12], [b, d, c].map(u32::to_le_bytes).concat());
        assert_eq!(info.signature, identity.cpuid().cpuid(1, 0)[0]);
    }
}

#[test]
fn info_reports_what_ibs_samples() {
    let nothing = [Err(MissingFeature::NoUnit); 3];
    for (name, wanted) in [
        ("zen4-7700x", [Ok(()), Ok(()), Err(MissingFeature::OtherEvent)]),
        ("raven-ridge-2500u", nothing),
        ("skylake-6600k", nothing),
    ] {
        let machine = SimMachine::named(name, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let info = InfoReply::read_from_bytes(&client.ask(&mut engine, Code::Info, &[], INFO).bytes).unwrap();
        assert_eq!([0x76, 0xC0, 0xC2].map(|select| Summary::from_number(info.ibs).samples(select)), wanted, "{name}");
    }
}

#[test]
fn intervals_are_clamped_and_the_previous_one_is_reported() {
    let machine = SimMachine::named("intel-v1", 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let mut before = 65_536;
    for (wanted, used) in [
        (0, 4_096),
        (4_095, 4_096),
        (4_096, 4_096),
        (1_000_000, 1_000_000),
        (0x7FFF_FFFF, 0x7FFF_FFFF),
        (0x8000_0000, 0x7FFF_FFFF),
        (u32::MAX, 0x7FFF_FFFF),
    ] {
        let request = IntervalRequest { source: 2, interval: wanted, reserved: 0 };
        let records: Vec<SourceRecord> = client.ask(&mut engine, Code::SetInterval, request.as_bytes(), 192).records();
        assert_eq!((records[0].interval, records[0].previous_interval), (used, before), "{wanted}");
        let request = SourceRequest { source: 2, core_type: 0, reserved: 0 };
        let records: Vec<SourceRecord> = client.ask(&mut engine, Code::QuerySource, request.as_bytes(), 192).records();
        assert_eq!(records[0].interval, used);
        before = used;
    }
}

#[test]
fn each_refusal_has_its_error_code_and_changes_nothing() {
    let machine = SimMachine::named("intel-half-events", 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let mut far = ProcessorSet::EMPTY;
    assert!(far.insert(0) && far.insert(2));
    let unsupported = engine_unsupported(&mut engine, client);
    let all = ProcessorSet::EMPTY;
    let both = modes::BOTH;
    for (what, flags, set, events, status, cause) in [
        ("unknown", 0, all, vec![(19, both), (0x777, both)], STATUS_NOT_FOUND, ErrorCode::UnknownSource),
        (
            "unsupported",
            0,
            all,
            vec![(19, both), (unsupported, both)],
            STATUS_NOT_SUPPORTED,
            ErrorCode::UnsupportedSource,
        ),
        ("a timer in one mode", 0, all, vec![(0, modes::USER)], STATUS_INVALID_PARAMETER, ErrorCode::BadModes),
        ("no mode", 0, all, vec![(19, 0)], STATUS_INVALID_PARAMETER, ErrorCode::BadModes),
        ("mode 4", 0, all, vec![(19, 7)], STATUS_INVALID_PARAMETER, ErrorCode::BadModes),
        ("flags", 32, all, vec![(19, both)], STATUS_INVALID_PARAMETER, ErrorCode::BadFlags),
        ("processor", 0, far, vec![(19, both)], STATUS_INVALID_PARAMETER, ErrorCode::NoSuchProcessor),
        ("counters", 0, all, vec![(19, both); 6], STATUS_INSUFFICIENT_RESOURCES, ErrorCode::NoFreeCounter),
    ] {
        let header = client.start(&mut engine, flags, set, &events).header();
        assert_eq!((header.status, header.cause), (status.number(), cause as u32), "{what}");
        assert_eq!(client.tell::<_, SessionEvent>(&mut engine, Code::ListSessions), [], "{what}");
        for cpu in machine.all() {
            let accesses = cpu.model().accesses();
            assert_eq!((accesses.wrmsr, accesses.rdmsr, accesses.rdpmc), (0, 0, 0), "{what}: no register touched");
        }
    }
    for (code, at, length) in [(Code::ControlArea, 8, 272), (Code::Samples, 12, 16)] {
        let mut input = vec![0; length];
        input[at] = 0x40;
        let header = client.ask(&mut engine, code, &input, 4096).header();
        assert_eq!((header.cause, header.detail[0]), (ErrorCode::BadFlags as u32, 0x40), "{code:?}");
    }
    let header = client.stop(&mut engine, 77, None).header();
    assert_eq!((header.cause, header.detail), (ErrorCode::NoSuchSession as u32, [77, 0]));
    let session = client.started(&mut engine, 0, &[19]);
    let header = client.stop(&mut engine, session, Some(6)).header();
    assert_eq!((header.cause, header.source), (ErrorCode::NotStarted as u32, 6));
    client.started(&mut engine, flags::DETACHED, &[19]);
    let header = client.start(&mut engine, flags::DETACHED, all, &[(19, modes::USER)]).header();
    assert_eq!((header.cause, header.detail), (ErrorCode::AlreadyStarted as u32, [session + 1, 0]));
}

/// Returns a source that the identity's EBX excludes.
fn engine_unsupported(engine: &mut Engine<&SimMachine>, client: Client) -> u64 {
    let sources: Vec<SourceRecord> = client.tell(engine, Code::ListSources);
    let ruled_out = [Support::EventNotAvailable as u32, Support::EventNotEnumerated as u32];
    sources.iter().find(|source| ruled_out.contains(&source.support)).unwrap().source
}

proptest::proptest! {
    #[test]
    fn any_bytes_in_any_request_are_answered_or_refused(
        codes in proptest::collection::vec(0..REQUESTS.len(), 1..12),
        bytes in proptest::collection::vec(0_u8.., 0..400),
        output in 0_usize..600,
    ) {
        let machine = SimMachine::named("intel-v2", 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        for code in codes {
            let spec = &REQUESTS[code];
            let mut input = bytes.clone();
            if let Size::Exactly(size) = spec.input {
                input.resize(size, 2);
            }
            let answer = client.ask(&mut engine, spec.code, &input, output);
            proptest::prop_assert!(answer.completion.information <= output);
        }
        engine.shut_down();
        for cpu in machine.all() {
            proptest::prop_assert_eq!(cpu.model().enabled_counters(), []);
        }
    }
}
