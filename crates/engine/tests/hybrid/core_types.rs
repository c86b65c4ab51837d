//! Events of one core type: where they are counted, and which requests are refused because they would mix two events.

use engine::Engine;
use model::{Accesses, Load, Mode, Processor};
use pmu::source::RawEvent;
use protocol::{
    ALL_SOURCES, Code, CoreTypeRecord, CountRecord, ErrorCode, Event, EventRequest, ProcessorSet, ReplyHeader,
    SessionEvent, SourceRecord, SourceRequest, StartHeader, StopRequest, flags, modes,
};
use simulation::{Client, SimMachine};
use zerocopy::IntoBytes;

use super::{engine, only, processor};

/// The numbers of the core types (SDM Vol. 2A, CPUID leaf 1AH).
const ATOM: u32 = 0x20;
const CORE: u32 = 0x40;

/// Golden Cove on even processors, Gracemont on odd ones.
const ALDER_LAKE: &str = "alder-lake-p-12900h";

/// Loads that miss the last level cache on Golden Cove, and that find a modified line on Gracemont.
fn load() -> u64 {
    RawEvent::new().with_event(0xD1).with_umask(0x20).source().0
}

fn event(source: u64, core_type: u32) -> EventRequest {
    EventRequest {
        event: Event { core_type, ..Event::of(source) },
        modes: simulation::quiet_modes(source),
        ..EventRequest::EMPTY
    }
}

fn header(flags: u32, processors: ProcessorSet) -> StartHeader {
    StartHeader { flags, processors, ..StartHeader::EMPTY }
}

fn start(
    client: Client,
    engine: &mut Engine<&SimMachine>,
    processors: ProcessorSet,
    events: &[EventRequest],
) -> ReplyHeader {
    client.start_with(engine, header(0, processors), events).header()
}

/// Starts events and returns the session.
fn started(client: Client, engine: &mut Engine<&SimMachine>, processors: ProcessorSet, events: &[EventRequest]) -> u64 {
    let answer = start(client, engine, processors, events);
    assert_eq!((answer.status, answer.cause), (0, 0), "{answer:?}");
    answer.detail[0]
}

/// Executes loads on processor `number`: each number is the only one of its kind and processor.
fn run_loads(machine: &SimMachine, number: u32) {
    let loads = [(Load::MissedLastLevel, missed(number)), (Load::HitModified, modified(number))];
    machine.processor(number).model().run_loads(Mode::User, &loads);
}

fn missed(processor: u32) -> u64 {
    1_000 + u64::from(processor)
}

fn modified(processor: u32) -> u64 {
    70 + u64::from(processor)
}

/// Returns core type, processor, and count of each record.
fn rows(records: &[CountRecord]) -> Vec<(u32, u32, u64)> {
    records.iter().map(|record| (record.event.core_type, record.processor, record.count)).collect()
}

fn untouched(machine: &SimMachine, processors: impl IntoIterator<Item = u32>) {
    for number in processors {
        assert_eq!(machine.processor(number).model().accesses(), Accesses::default(), "CPU {number}");
    }
}

#[test]
fn an_event_that_two_core_types_count_differently_is_refused_without_a_core_type() {
    let machine = SimMachine::named(ALDER_LAKE, 4);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    for processors in [ProcessorSet::EMPTY, only(&[0, 1]), only(&[1, 2, 3])] {
        let refused = start(client, &mut engine, processors, &[event(19, 0), event(load(), 0)]);
        assert_eq!(refused.cause, ErrorCode::CoreTypeNeeded as u32);
        assert_eq!((refused.source, refused.detail[0]), (load(), u64::from(ATOM | CORE)));
        assert_eq!(client.tell::<_, SessionEvent>(&mut engine, Code::ListSessions), []);
    }
    untouched(&machine, 0..4);
}

#[test]
fn each_core_type_counts_its_own_event_and_no_other() {
    let machine = SimMachine::named(ALDER_LAKE, 4);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let both = started(client, &mut engine, ProcessorSet::EMPTY, &[event(load(), CORE), event(load(), ATOM)]);
    let listed: Vec<SessionEvent> = client.tell(&mut engine, Code::ListSessions);
    let where_listed = |of: &SessionEvent| (of.event.core_type, of.processors, of.first_processor);
    assert_eq!(listed.iter().map(where_listed).collect::<Vec<_>>(), [(CORE, 2, 0), (ATOM, 2, 1)]);
    (0..4).for_each(|number| run_loads(&machine, number));
    let expected = [(CORE, 0, missed(0)), (ATOM, 1, modified(1)), (CORE, 2, missed(2)), (ATOM, 3, modified(3))];
    assert_eq!(rows(&client.read(&mut engine, both)), expected);

    let stop = StopRequest { session: both, source: load(), core_type: ATOM, reserved: 0 };
    let stopped: Vec<CountRecord> = client.ask(&mut engine, Code::Stop, stop.as_bytes(), 1 << 12).records();
    assert_eq!(rows(&stopped), [expected[1], expected[3]]);
    let again = client.ask(&mut engine, Code::Stop, stop.as_bytes(), 1 << 12).header();
    assert_eq!(again.cause, ErrorCode::NotStarted as u32);
    (0..4).for_each(|number| run_loads(&machine, number));
    let rest: Vec<CountRecord> = client.stop(&mut engine, both, None).records();
    assert_eq!(rows(&rest), [(CORE, 0, 2 * missed(0)), (CORE, 2, 2 * missed(2))]);
    assert!(machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()));
}

#[test]
fn a_stop_that_names_no_event_succeeds_only_if_it_addresses_all() {
    let machine = SimMachine::named(ALDER_LAKE, 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let of_core = started(client, &mut engine, ProcessorSet::EMPTY, &[event(load(), CORE)]);
    let mut stop = |session, source, core_type| {
        let request = StopRequest { session, source, core_type, reserved: 0 };
        let answer = client.ask(&mut engine, Code::Stop, request.as_bytes(), 1 << 12);
        (answer.header().cause, answer.records::<CountRecord>().len())
    };
    let nothing = (ErrorCode::NotStarted as u32, 0);
    assert_eq!(stop(of_core, ALL_SOURCES, ATOM), nothing);
    assert_eq!(stop(of_core, load(), ATOM), nothing);
    assert_eq!(stop(of_core, 19, 0), nothing);
    assert_eq!(stop(of_core, ALL_SOURCES, CORE), (0, 1));
    assert_eq!(stop(0, ALL_SOURCES, 0), (0, 0), "all of nothing");
}

#[test]
fn an_event_of_one_core_type_touches_no_processor_of_the_other() {
    for (core_type, other) in [(CORE, [1, 3]), (ATOM, [0, 2])] {
        let machine = SimMachine::named(ALDER_LAKE, 4);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let sampled = EventRequest { interval: 4_096, ..event(19, core_type) };
        let with_ring = StartHeader { ring: 64, ..header(0, ProcessorSet::EMPTY) };
        let answer = client.start_with(&mut engine, with_ring, &[sampled, event(load(), core_type)]).header();
        assert_eq!((answer.status, answer.cause), (0, 0), "{core_type:#x}");
        for number in 0..4 {
            machine.run(number, Mode::User, &|_| 4_096);
            let place = engine::Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };
            machine.interrupt(&engine, number, &place);
        }
        untouched(&machine, other);
        let fetched = client.samples(&mut engine, answer.detail[0], None, 100).unwrap().try_samples().unwrap();
        assert!(!fetched.is_empty(), "{core_type:#x}");
        assert!(fetched.iter().all(|sample| !other.contains(&sample.processor())), "{core_type:#x}");
        let counts: Vec<CountRecord> = client.stop(&mut engine, answer.detail[0], None).records();
        assert_eq!(counts.len(), 4, "{core_type:#x}: two events on two processors");
        assert!(counts.iter().all(|count| count.event.core_type == core_type && !other.contains(&count.processor)));
        untouched(&machine, other);
    }
}

#[test]
fn an_event_on_processors_of_one_core_type_gets_that_type() {
    let machine = SimMachine::named(ALDER_LAKE, 4).with_active(1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let everywhere = started(client, &mut engine, ProcessorSet::EMPTY, &[event(load(), 0)]);
    let listed: Vec<SessionEvent> = client.tell(&mut engine, Code::ListSessions);
    assert_eq!(listed[0].event.core_type, CORE, "the only active processor is a P core");
    (1..4).for_each(|_| machine.add_processor(&mut engine));
    (0..4).for_each(|number| run_loads(&machine, number));
    let counts: Vec<CountRecord> = client.stop(&mut engine, everywhere, None).records();
    assert_eq!(rows(&counts), [(CORE, 0, missed(0)), (CORE, 2, missed(2))], "an added E core does not count it");

    let chosen = started(client, &mut engine, only(&[1, 3]), &[event(load(), 0)]);
    (0..4).for_each(|number| run_loads(&machine, number));
    let counts: Vec<CountRecord> = client.stop(&mut engine, chosen, None).records();
    assert_eq!(rows(&counts), [(ATOM, 1, modified(1)), (ATOM, 3, modified(3))]);
}

#[test]
fn processors_that_are_added_count_the_events_of_their_core_type() {
    let machine = SimMachine::named(ALDER_LAKE, 4).with_active(2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let both = started(client, &mut engine, ProcessorSet::EMPTY, &[event(load(), CORE), event(load(), ATOM)]);
    let atoms = started(client, &mut engine, ProcessorSet::EMPTY, &[event(load(), ATOM)]);
    (2..4).for_each(|_| machine.add_processor(&mut engine));
    (0..4).for_each(|number| run_loads(&machine, number));
    let expected = [(CORE, 0, missed(0)), (ATOM, 1, modified(1)), (CORE, 2, missed(2)), (ATOM, 3, modified(3))];
    let counts: Vec<CountRecord> = client.stop(&mut engine, both, None).records();
    assert_eq!(rows(&counts), expected);
    let counts: Vec<CountRecord> = client.stop(&mut engine, atoms, None).records();
    assert_eq!(rows(&counts), [expected[1], expected[3]]);
}

/// A hypervisor can hide the hybrid bit and add a processor of the other type later.
#[test]
fn an_event_without_a_core_type_does_not_extend_to_a_processor_that_makes_the_machine_a_hybrid() {
    let hidden = |name: &str| {
        let dump = cpuid_dumps::find(name).unwrap().cpuid();
        Processor::new(Box::new(move |leaf, subleaf| {
            let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
            [eax, ebx, ecx, if leaf == 7 && subleaf == 0 { edx & !(1 << 15) } else { edx }]
        }))
    };
    let names = [ALDER_LAKE, "alder-lake-p-12900h-efficient"];
    let machine = SimMachine::of(names.map(hidden)).with_active(1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let refused = start(client, &mut engine, ProcessorSet::EMPTY, &[event(load(), CORE)]);
    assert_eq!(refused.cause, ErrorCode::NoSuchCoreType as u32, "nothing says that it is a hybrid");
    let session = started(client, &mut engine, ProcessorSet::EMPTY, &[event(load(), 0)]);
    let cycles = started(client, &mut engine, ProcessorSet::EMPTY, &[event(19, 0)]);
    machine.add_processor(&mut engine);
    assert_eq!(client.read(&mut engine, session).len(), 1);
    assert_eq!(client.read(&mut engine, cycles).len(), 2);
    let refused = start(client, &mut engine, ProcessorSet::EMPTY, &[event(load(), 0)]);
    assert_eq!(refused.cause, ErrorCode::CoreTypeNeeded as u32, "now the processors say so");
}

#[test]
fn an_architectural_event_counts_everywhere_if_both_core_types_have_it() {
    let instructions = RawEvent::new().with_event(0xC0);
    let slots = RawEvent::new().with_event(0xA4).with_umask(0x01);
    let misses = RawEvent::new().with_event(0x2E).with_umask(0x41);
    for (name, raw, is_common) in [
        (ALDER_LAKE, instructions, true),
        (ALDER_LAKE, misses, true),
        (ALDER_LAKE, instructions.with_cmask(1), false),
        (ALDER_LAKE, instructions.with_edge(true).with_cmask(1), false),
        (ALDER_LAKE, instructions.with_umask(0x01), false),
        (ALDER_LAKE, slots, common_to_both(ALDER_LAKE, 7)),
        ("lunar-lake-288v", slots, common_to_both("lunar-lake-288v", 7)),
        ("intel-hybrid", instructions, true),
        ("intel-hybrid", misses, false),
    ] {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let answer = start(client, &mut engine, ProcessorSet::EMPTY, &[event(raw.source().0, 0)]);
        let cause = if is_common { ErrorCode::None } else { ErrorCode::CoreTypeNeeded };
        assert_eq!(answer.cause, cause as u32, "{name}, {raw:?}");
        if is_common {
            (0..2).for_each(|number| machine.run(number, Mode::User, &|_| 5 + u64::from(number)));
            assert_eq!(rows(&client.read(&mut engine, answer.detail[0])), [(CORE, 0, 5), (ATOM, 1, 6)], "{name}");
        }
    }
}

/// Returns whether both kinds of processors enumerate the architectural event with this bit (leaf 0AH, EBX).
fn common_to_both(name: &str, bit: u32) -> bool {
    [0, 1].into_iter().all(|number| {
        let [eax, ebx, ..] = cpuid_dumps::find(name).unwrap().of_processor(number).cpuid().cpuid(0xA, 0);
        bit < eax >> 24 && ebx >> bit & 1 == 0
    })
}

#[test]
fn a_core_type_without_a_processor_is_refused() {
    let (core, atom) = (u64::from(CORE), u64::from(ATOM));
    for (name, processors, core_type, detail) in [
        (ALDER_LAKE, only(&[0, 2]), ATOM, [atom, core]),
        (ALDER_LAKE, only(&[1]), CORE, [core, atom]),
        (ALDER_LAKE, ProcessorSet::EMPTY, 0x30, [0x30, 0]),
        (ALDER_LAKE, ProcessorSet::EMPTY, ATOM | CORE, [atom | core, 0]),
        (ALDER_LAKE, ProcessorSet::EMPTY, u32::MAX, [u64::from(u32::MAX), 0]),
        ("skylake-6600k", ProcessorSet::EMPTY, CORE, [core, 0]),
        ("zen4-7700x", ProcessorSet::EMPTY, ATOM, [atom, 0]),
    ] {
        let machine = SimMachine::named(name, 4);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let refused = start(client, &mut engine, processors, &[event(2, 0), event(6, core_type)]);
        let told = (refused.cause, refused.source, refused.detail);
        assert_eq!(told, (ErrorCode::NoSuchCoreType as u32, 6, detail), "{name}, {core_type:#x}");
        untouched(&machine, 0..4);
    }
}

#[test]
fn a_source_that_one_core_type_lacks_counts_on_the_other() {
    let machine = SimMachine::named("intel-hybrid", 4);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let refused = start(client, &mut engine, ProcessorSet::EMPTY, &[event(super::MISSES, ATOM)]);
    assert_eq!((refused.cause, refused.processor), (ErrorCode::UnsupportedSource as u32, 1));
    let session = started(client, &mut engine, ProcessorSet::EMPTY, &[event(super::MISSES, CORE), event(19, 0)]);
    let counts = client.read(&mut engine, session);
    let found: Vec<_> =
        counts.iter().map(|count| (count.event.source, count.processor, count.event.core_type)).collect();
    let (misses, cycles) = (super::MISSES, 19);
    let expected = [
        (misses, 0, CORE),
        (cycles, 0, CORE),
        (cycles, 1, ATOM),
        (misses, 2, CORE),
        (cycles, 2, CORE),
        (cycles, 3, ATOM),
    ];
    assert_eq!(found, expected);
}

#[test]
fn detached_events_of_two_core_types_are_two_events() {
    let machine = SimMachine::named(ALDER_LAKE, 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let mut detach = |processors: &[u32], core_type| {
        let header = header(flags::DETACHED, only(processors));
        client.start_with(&mut engine, header, &[event(load(), core_type)]).header().cause
    };
    assert_eq!(detach(&[], CORE), 0);
    assert_eq!(detach(&[], ATOM), 0);
    for (processors, core_type) in [(&[][..], CORE), (&[0], CORE), (&[0], 0), (&[1], 0)] {
        assert_eq!(detach(processors, core_type), ErrorCode::AlreadyStarted as u32, "{processors:?}, {core_type:#x}");
    }
}

#[test]
fn timers_and_machines_with_one_kind_of_processors_have_no_core_type() {
    for (name, source) in [(ALDER_LAKE, 0), ("skylake-6600k", 19), ("sapphire-rapids-2475x", 19), ("zen4-7700x", 2)] {
        let machine = SimMachine::named(name, 2);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let session = started(client, &mut engine, ProcessorSet::EMPTY, &[event(source, 0)]);
        assert!(client.read(&mut engine, session).iter().all(|count| count.event.core_type == 0), "{name}");
        let types: Vec<CoreTypeRecord> = client.tell(&mut engine, Code::ListCoreTypes);
        assert_eq!(types.len(), if name == ALDER_LAKE { 2 } else { 0 }, "{name}");
    }
}

#[test]
fn the_driver_lists_each_core_type_with_its_counters_and_processors() {
    for name in [ALDER_LAKE, "intel-hybrid", "lunar-lake-288v", "meteor-lake-155h"] {
        let machine = SimMachine::named(name, 4);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let types: Vec<CoreTypeRecord> = client.tell(&mut engine, Code::ListCoreTypes);
        for (number, core_type, record) in [(0, CORE, &types[0]), (1, ATOM, &types[1])] {
            let expected = cpuid_dumps::find(name).unwrap().of_processor(number).expected;
            assert_eq!(record.core_type, core_type, "{name}");
            let counters = (record.counters, record.fixed_counters, record.width);
            let wanted = (expected.counters.into(), expected.fixed.into(), expected.width.into());
            assert_eq!(counters, wanted, "{name}, {core_type:#x}");
            assert!(record.processors.iter().eq([number, number + 2]), "{name}, {core_type:#x}");
        }
        assert_eq!(types.len(), 2, "{name}");
    }
}

#[test]
fn a_source_is_described_for_each_core_type() {
    let machine = SimMachine::named(ALDER_LAKE, 4);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    started(client, &mut engine, ProcessorSet::EMPTY, &[event(load(), CORE), event(19, 0)]);
    let mut query = |source, core_type| {
        let request = SourceRequest { source, core_type, reserved: 0 };
        client.ask(&mut engine, Code::QuerySource, request.as_bytes(), 1 << 10)
    };
    // Event files of Alder Lake: counters 0 to 3, and 0 to 5.
    for (core_type, counters, running) in [(CORE, 0xF, 2), (ATOM, 0x3F, 0)] {
        let [record]: [SourceRecord; 1] = query(load(), core_type).records().try_into().unwrap();
        assert_eq!((record.core_type, record.support), (core_type, 0));
        assert_eq!((record.counters, record.precise, record.running), (counters, counters, running), "{core_type:#x}");
        let [cycles]: [SourceRecord; 1] = query(19, core_type).records().try_into().unwrap();
        assert_eq!((cycles.running, cycles.precise), (2, 0), "{core_type:#x}");
    }
    assert_eq!(query(19, 0).records::<SourceRecord>()[0].running, 4);
    assert_eq!(query(19, 0x30).header().cause, ErrorCode::NoSuchCoreType as u32);

    let machine = SimMachine::named("intel-hybrid", 2);
    let mut engine = super::engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    for (core_type, is_supported) in [(CORE, true), (ATOM, false)] {
        let request = SourceRequest { source: super::MISSES, core_type, reserved: 0 };
        let answer = client.ask(&mut engine, Code::QuerySource, request.as_bytes(), 1 << 10);
        assert_eq!(answer.records::<SourceRecord>()[0].support == 0, is_supported, "{core_type:#x}");
    }
}

#[test]
fn precise_events_of_one_core_type_use_the_debug_store_of_its_processors_only() {
    let with_memory = |number: u32| {
        let identity = cpuid_dumps::find(ALDER_LAKE).unwrap().of_processor(number);
        let mut processor = processor(identity.name).with_perf_capabilities(identity.perf_capabilities());
        processor.set_memory(Box::new(host_memory::ProcessMemory));
        processor
    };
    for (core_type, other) in [(CORE, [1, 3]), (ATOM, [0, 2])] {
        let machine = SimMachine::of((0..4).map(with_memory));
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        let precise = modes::USER | modes::PRECISE;
        let wanted = EventRequest { modes: precise, interval: 4_096, ..event(0x1A, core_type) };
        let with_ring = StartHeader { ring: 64, ..header(0, ProcessorSet::EMPTY) };
        let answer = client.start_with(&mut engine, with_ring, &[wanted]).header();
        assert_eq!((answer.status, answer.cause), (0, 0), "{core_type:#x}, {answer:?}");
        for number in 0..4 {
            machine.processor(number).model().set_place(0x40_1000, 77);
            machine.run(number, Mode::User, &|_| 4_097);
            let place = engine::Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };
            machine.deliver(&engine, number, &place);
        }
        let fetched = client.samples(&mut engine, answer.detail[0], None, 100).unwrap().try_samples().unwrap();
        assert_eq!(fetched.len(), 2, "{core_type:#x}: one on each processor of the type");
        assert!(fetched.iter().all(|sample| matches!(sample, protocol::Record::Precise(_))), "{core_type:#x}");
        assert!(fetched.iter().all(|sample| !other.contains(&sample.processor())), "{core_type:#x}");
        let _ = client.stop(&mut engine, answer.detail[0], None);
        untouched(&machine, other);
    }
}

#[test]
fn time_is_sampled_on_the_processors_of_its_core_type_alone() {
    const INTERVAL: u32 = 10_000;
    let machine = SimMachine::named(ALDER_LAKE, 2);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    for (core_type, there) in [(CORE, 0), (ATOM, 1)] {
        // Another session has timers on both processors, and the other event brings a ring to both.
        let everywhere = [EventRequest { interval: INTERVAL, ..event(0, 0) }];
        let rings = StartHeader { ring: 64, ..header(0, ProcessorSet::EMPTY) };
        let beside = client.start_with(&mut engine, rings, &everywhere).header().detail[0];
        let both = [
            EventRequest { interval: INTERVAL, ..event(0, core_type) },
            EventRequest { interval: 5_000, ..event(2, 0) },
        ];
        let [session, _] = client.start_with(&mut engine, rings, &both).header().detail;
        for _ in 0..3 {
            machine.pass(INTERVAL.into());
            for processor in machine.timed() {
                let interrupted = engine::Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };
                machine.expire(&engine, processor, &interrupted);
            }
        }
        let records = client.samples(&mut engine, session, None, 100).unwrap().try_samples().unwrap();
        let processors: Vec<u32> = records.iter().map(protocol::Record::processor).collect();
        assert_eq!(processors, [there; 3], "core type {core_type:#x}");
        for session in [session, beside] {
            client.stop(&mut engine, session, None);
        }
    }
}
