//! Ops and fetches that AMD's Instruction-Based Sampling samples in the interrupts of a counter.

#![cfg(test)]

use std::collections::BTreeMap;

use ::engine::{Engine, Interrupted};
use model::{
    DataSource as From, ExecutedFetch, ExecutedOp, FaultingAccess, FetchSource, InterruptMode, MemoryAccess, Mode,
    OpKind, Processor, Quirk,
};
use pmu::ibs::MissingFeature;
use pmu::source::RawEvent;
use proptest::prelude::*;
use protocol::{
    AccessEncoding, AccessOperation, AccessRecord, ErrorCode, Event, EventRequest, PreciseSample, Record, StartHeader,
    UNKNOWN, event_flags, flags, is_kernel_address, modes,
};
use simulation::{Client, SimMachine};

use crate::recorded::scene::{engine, fetched, machine, started, stopped};

/// A processor of each generation, its encodings of ops and of fetches, and the number of an op's source for the L3
/// cache.
const PROCESSORS: [(&str, [AccessEncoding; 2], u32); 6] = [
    ("deneb-940", [AccessEncoding::Ibs, AccessEncoding::IbsFetch], 2),
    ("rome-7742", [AccessEncoding::Ibs, AccessEncoding::IbsFetchZen], 2),
    ("milan-7713", [AccessEncoding::IbsZen3, AccessEncoding::IbsFetchZen3], 2),
    ("cezanne-5800h", [AccessEncoding::IbsZen3Client, AccessEncoding::IbsFetchZen], 2),
    ("zen4-7700x", [AccessEncoding::IbsZen4, AccessEncoding::IbsFetchZen4], 1),
    ("zen5-9800x3d", [AccessEncoding::IbsZen4, AccessEncoding::IbsFetchZen4], 1),
];

const INTERVAL: u32 = 10_000;
const USER: u64 = 0x7FF6_0000_1000;
const KERNEL: u64 = 0xFFFF_F801_0000_1000;

const CONTROL: u32 = 0xC001_1033;
const ENABLE: u64 = 1 << 17;

const FETCH_CONTROL: u32 = 0xC001_1030;
const FETCH_ENABLE: u64 = 1 << 48;
const RANDOM: u64 = 1 << 57;

fn raw(event: u16) -> u64 {
    RawEvent::new().with_event(event).source().0
}

/// Returns the precise form of cycles.
fn cycles() -> EventRequest {
    EventRequest {
        event: Event::of(raw(0x76)),
        modes: modes::BOTH | modes::PRECISE,
        interval: INTERVAL,
        ..EventRequest::EMPTY
    }
}

fn header() -> StartHeader {
    StartHeader { ring: 4096, budget: 900, ..StartHeader::EMPTY }
}

const fn op(ip: u64, kind: OpKind) -> ExecutedOp {
    ExecutedOp { ip, cycles: 7, kind }
}

const fn access(address: u64, source: From) -> MemoryAccess {
    MemoryAccess { address, source, modified: false, latency: 300, tlb_miss: false, locked: false }
}

/// Ops of each kind, whose addresses tell which is which; their data are in either half of the address space.
fn ops() -> Vec<ExecutedOp> {
    vec![
        op(USER, OpKind::Other),
        op(USER + 4, OpKind::Load(access(0x1111_0000, From::L1))),
        op(USER + 8, OpKind::Load(access(0x2222_0000, From::L3))),
        op(USER + 12, OpKind::Store(access(0x3333_0000, From::Dram))),
        op(USER + 16, OpKind::Branch { target: USER, taken: true, mispredicted: false }),
        op(USER + 20, OpKind::Load(access(KERNEL + 0x8000, From::L2))),
        op(KERNEL, OpKind::Load(access(0x4444_0000, From::FarDram))),
        op(KERNEL + 4, OpKind::Other),
        op(USER + 24, OpKind::Microcode),
    ]
}

/// Returns the event at which fetches are sampled.
fn fetches() -> EventRequest {
    EventRequest { event: Event::of(raw(0xC0)), flags: event_flags::FETCHES, ..cycles() }
}

/// Fetches from each source in either half of the address space. Their latencies tell which is which.
fn code() -> Vec<ExecutedFetch> {
    let of = |(number, source): (u16, FetchSource)| {
        let start = if number.is_multiple_of(2) { USER } else { KERNEL };
        ExecutedFetch { address: start + 64 * u64::from(number), latency: 10 + number, source, tlb_misses: 2 }
    };
    (0..).zip(FetchSource::ALL.into_iter().cycle().take(11)).map(of).collect()
}

/// Checks what a sample tells of the fetch at its address.
fn check_fetch(name: &str, sample: &PreciseSample, access: Option<&AccessRecord>, encoding: AccessEncoding) {
    let found = code().into_iter().find(|fetch| fetch.address == sample.ip);
    let (found, access) = found.zip(access).unwrap_or_else(|| panic!("{name}: {sample:x?}"));
    let expected = (sample.ip, found.latency.into(), AccessOperation::Fetch, encoding);
    assert_eq!((access.address, access.latency, access.operation, access.encoding), expected, "{name}");
    let is_complete = access.source >> 2 & 1 != 0;
    assert_eq!(is_complete, found.source != FetchSource::Abandoned, "{name}: {access:x?}");
}

fn interrupted(thread: u32) -> Interrupted {
    Interrupted { ip: 0xBAD, process: 100, thread, mode: protocol::Mode::User }
}

/// Lets the counter of processor 0 overflow, and serves its interrupt.
fn overflow(machine: &SimMachine, engine: &Engine<&SimMachine>, thread: u32) {
    overflow_on(machine, engine, 0, thread);
}

fn overflow_on(machine: &SimMachine, engine: &Engine<&SimMachine>, processor: u32, thread: u32) {
    machine.run(processor, Mode::User, &|_| INTERVAL.into());
    machine.deliver(engine, processor, &interrupted(thread));
}

/// Returns the samples, each with its access.
fn by_sample(records: &[Record]) -> Vec<(PreciseSample, Option<AccessRecord>)> {
    let mut samples: Vec<(PreciseSample, Option<AccessRecord>)> = Vec::new();
    for record in records {
        match record {
            Record::Precise(sample) => samples.push((*sample, None)),
            Record::Access(access) => {
                let Some((sample, place)) = samples.last_mut() else { unreachable!("an access without a sample") };
                let of = |time, process, thread, event, number: u64| (time, process, thread, event, number & 0xFFFF);
                assert_eq!(
                    of(sample.time, sample.process, sample.thread, sample.event, sample.number),
                    of(access.time, access.process, access.thread, access.event, access.number.into())
                );
                assert!(place.replace(*access).is_none());
            }
            other => unreachable!("{other:?}"),
        }
    }
    samples
}

/// Checks what a sample tells of the op at its address.
fn check(name: &str, sample: &PreciseSample, access: Option<&AccessRecord>, modes: u32, encoding: AccessEncoding) {
    let found = ops().into_iter().find(|op| op.ip == sample.ip).unwrap_or_else(|| panic!("{name}: {sample:x?}"));
    let (operation, memory) = match found.kind {
        OpKind::Load(memory) => (AccessOperation::Load, memory),
        OpKind::Store(memory) => (AccessOperation::Store, memory),
        _ => return assert!(access.is_none(), "{name}"),
    };
    let access = access.unwrap();
    let is_shown = modes & modes::KERNEL != 0 || !is_kernel_address(memory.address);
    assert_eq!(access.address, if is_shown { memory.address } else { 0 }, "{name}");
    let has_latency = operation == AccessOperation::Load && memory.source != From::L1;
    assert_eq!(access.latency, if has_latency { memory.latency.into() } else { 0 }, "{name}");
    assert_eq!((access.operation, access.encoding), (operation, encoding), "{name}");
}

#[test]
fn each_overflow_has_the_op_that_retired_before_it() {
    for (name, [encoding, _], l3) in PROCESSORS {
        for modes in [modes::USER, modes::BOTH] {
            let machine = machine(name, 0, 1);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let mut ops = ops();
            // No bit of the oldest tells that an address is of another op.
            ops.retain(|op| name != "deneb-940" || op.kind != OpKind::Microcode);
            machine.processor(0).model().set_ops(ops);
            let request = EventRequest { modes: modes | modes::PRECISE, ..cycles() };
            let session = started(client, &mut engine, &header(), &[request]);
            for _ in 0..200 {
                overflow(&machine, &engine, 200);
            }
            let [count] = stopped(client, &mut engine, session, None)[..] else { panic!() };
            let samples = by_sample(&fetched(client, &mut engine, session));
            assert_eq!((count.samples, count.samples + count.unmet), (samples.len() as u64, 200), "{name}");
            let mut seen = BTreeMap::new();
            for (sample, access) in &samples {
                check(name, sample, access.as_ref(), modes, encoding);
                let mode = if is_kernel_address(sample.ip) { protocol::Mode::Kernel } else { protocol::Mode::User };
                assert_eq!((sample.mode, sample.interval), (mode, INTERVAL), "{name}");
                assert!(modes & modes::KERNEL != 0 || mode == protocol::Mode::User, "{name}");
                *seen.entry(sample.ip).or_insert(0) += 1;
                let is_l3 = sample.ip == USER + 8;
                assert!(!is_l3 || access.unwrap().source >> 22 & 0x1F == l3, "{name}: {access:x?}");
            }
            // Each op has its share, but those without an address, or in a mode that was not asked for.
            assert_eq!(seen.len(), if modes & modes::KERNEL != 0 { 8 } else { 6 }, "{name}: {seen:x?}");
            assert_eq!(machine.processor(0).model().rdmsr(CONTROL).unwrap() & ENABLE, 0, "{name}");
        }
    }
}

#[test]
fn each_overflow_has_a_fetch_of_those_that_were_asked_for() {
    for (name, [_, encoding], _) in PROCESSORS {
        for modes in [modes::USER, modes::BOTH] {
            let machine = machine(name, 0, 1);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            machine.processor(0).model().set_fetches(code());
            let request = EventRequest { modes: modes | modes::PRECISE, ..fetches() };
            let session = started(client, &mut engine, &header(), &[request]);
            let control = machine.processor(0).model().rdmsr(FETCH_CONTROL).unwrap();
            assert_eq!(control & RANDOM, RANDOM, "{name}");
            for _ in 0..300 {
                overflow(&machine, &engine, 200);
            }
            let [count] = stopped(client, &mut engine, session, None)[..] else { panic!() };
            let samples = by_sample(&fetched(client, &mut engine, session));
            assert_eq!((count.samples, count.samples + count.unmet), (samples.len() as u64, 300), "{name}");
            let mut seen = std::collections::BTreeSet::new();
            for (sample, access) in &samples {
                check_fetch(name, sample, access.as_ref(), encoding);
                assert!(modes & modes::KERNEL != 0 || !is_kernel_address(sample.ip), "{name}");
                seen.insert(sample.ip);
            }
            assert_eq!(seen.len(), if modes & modes::KERNEL != 0 { 11 } else { 6 }, "{name}: {seen:x?}");
            // Erratum 1197: every eighth fetch of Milan has no address.
            let lost = if name == "milan-7713" { 300 / 8 } else { 0 };
            assert!(modes & modes::KERNEL == 0 || count.unmet.abs_diff(lost) <= 1, "{name}: {count:?}");
            assert_eq!(machine.processor(0).model().rdmsr(FETCH_CONTROL).unwrap() & FETCH_ENABLE, 0, "{name}");
        }
    }
}

#[test]
fn ops_that_do_not_load_or_store_are_left_out_where_these_are_asked_for() {
    for (flags, addresses) in [
        (event_flags::LOADS, &[USER + 4, USER + 8, USER + 20, KERNEL][..]),
        (event_flags::STORES, &[USER + 12]),
        (event_flags::LOADS | event_flags::STORES, &[USER + 4, USER + 8, USER + 12, USER + 20, KERNEL]),
    ] {
        let machine = machine("zen4-7700x", 0, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        machine.processor(0).model().set_ops(ops());
        let session = started(client, &mut engine, &header(), &[EventRequest { flags, ..cycles() }]);
        for _ in 0..300 {
            overflow(&machine, &engine, 200);
        }
        let [count] = stopped(client, &mut engine, session, None)[..] else { panic!() };
        let samples = by_sample(&fetched(client, &mut engine, session));
        let seen: std::collections::BTreeSet<u64> = samples.iter().map(|(sample, _)| sample.ip).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), addresses);
        assert!(count.unmet > 0 && count.samples + count.unmet == 300 && samples.iter().all(|(_, one)| one.is_some()));
    }
}

/// The op may be of a thread that ran in between, so the thread is that of the interrupt only if it was before, too.
#[test]
fn the_thread_of_an_op_is_known_if_it_ran_at_both_ends_of_the_period() {
    let machine = machine("zen5-9800x3d", 0, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let session = started(client, &mut engine, &header(), &[cycles()]);
    machine.processor(0).model().set_place(USER, 0);
    for thread in [200, 200, 204, 204, 204, 200] {
        overflow(&machine, &engine, thread);
    }
    let samples = by_sample(&fetched(client, &mut engine, session));
    let threads: Vec<u32> = samples.iter().map(|(sample, _)| sample.thread).collect();
    assert_eq!(threads, [UNKNOWN, 200, UNKNOWN, 204, 204, UNKNOWN]);
    assert!(
        samples.iter().all(|(sample, _)| sample.ip == USER && (sample.process == 100) == (sample.thread != UNKNOWN))
    );
}

fn refused(machine: &SimMachine, event: EventRequest) -> (u32, u64) {
    let mut engine = engine(machine);
    let client = Client::open(&mut engine, 1, 10);
    let answer = client.start_with(&mut engine, header(), &[event]).header();
    (answer.cause, answer.detail[0])
}

#[test]
fn what_cannot_sample_ops_is_refused_with_its_reason_and_nothing_is_written() {
    let none = |feature: MissingFeature| (ErrorCode::NoIbs as u32, feature as u64);
    let dump = |name: &str| cpuid_dumps::find(name).unwrap().cpuid();
    let zen4 = |change: fn(u32, [u32; 4]) -> [u32; 4]| {
        let dump = dump("zen4-7700x");
        SimMachine::of([Processor::new(Box::new(move |leaf, subleaf| change(leaf, dump.cpuid(leaf, subleaf))))])
    };
    let guest = zen4(|leaf, [eax, ebx, ecx, edx]| [eax, ebx, if leaf == 1 { ecx | 1 << 31 } else { ecx }, edx]);
    let hidden = zen4(|leaf, found| if leaf == 0x8000_001B { [0x801, 0, 0, 0] } else { found });
    let no_entry = machine("zen4-7700x", 0, 1);
    no_entry.processor(0).model().set_ibs_entry(0);
    let other_driver = machine("zen4-7700x", 0, 1);
    other_driver.processor(0).model().set_extended_lvt(0, 0x400);
    let cycles_alone = zen4(|leaf, found| if leaf == 0x8000_001B { [0b101, 0, 0, 0] } else { found });
    let ops = EventRequest { event: Event::of(raw(0xC1)), ..cycles() };
    let other = EventRequest { event: Event::of(raw(0xC2)), ..cycles() };
    let at_cycles = EventRequest { flags: event_flags::FETCHES, ..cycles() };
    let fetches_alone = zen4(|leaf, found| if leaf == 0x8000_001B { [0b11, 0, 0, 0] } else { found });
    for (machine, event, expected) in [
        (&guest, cycles(), none(MissingFeature::Hypervisor)),
        (&hidden, cycles(), none(MissingFeature::NoUnit)),
        (&machine("raven-ridge-2500u", 0, 1), cycles(), none(MissingFeature::NoUnit)),
        (&no_entry, cycles(), none(MissingFeature::NoEntry)),
        (&other_driver, cycles(), none(MissingFeature::Interrupts)),
        (&cycles_alone, ops, none(MissingFeature::NoOps)),
        (&machine("zen4-7700x", 0, 1), other, none(MissingFeature::OtherEvent)),
        (&fetches_alone, cycles(), none(MissingFeature::NoOps)),
        (&guest, fetches(), none(MissingFeature::Hypervisor)),
        (&machine("rembrandt-6800hs", 0, 1), fetches(), none(MissingFeature::NoFetches)),
        (&no_entry, fetches(), none(MissingFeature::NoEntry)),
        (&machine("zen4-7700x", 0, 1), at_cycles, none(MissingFeature::OtherEvent)),
    ] {
        assert_eq!(refused(machine, event), expected);
        for control in [CONTROL, FETCH_CONTROL] {
            let control = machine.processor(0).model().rdmsr(control);
            assert_eq!(control.unwrap_or(0), 0, "{expected:?}");
        }
    }
    for (event, register, bits) in [(cycles(), CONTROL, ENABLE), (fetches(), FETCH_CONTROL, FETCH_ENABLE)] {
        for quirk in [Quirk::Ignores { register }, Quirk::Drops { register, bits }] {
            let silent = machine("zen4-7700x", 0, 1);
            silent.processor(0).model().set_quirks([quirk]);
            assert_eq!(refused(&silent, event), none(MissingFeature::NotDelivered));
        }
    }
    let faulting = machine("zen4-7700x", 0, 1);
    faulting.processor(0).model().set_faulting([FaultingAccess::Rdmsr(0xC001_1037)]);
    assert_eq!(refused(&faulting, cycles()).0, ErrorCode::RegisterFault as u32);
    for (precise, flags) in [
        (0, event_flags::LOADS),
        (0, event_flags::FETCHES),
        (modes::PRECISE, event_flags::FETCHES | event_flags::LOADS),
        (modes::PRECISE, event_flags::FETCHES | event_flags::STORES),
    ] {
        let request = EventRequest { modes: modes::BOTH | precise, flags, ..fetches() };
        assert_eq!(refused(&machine("zen4-7700x", 0, 1), request).0, ErrorCode::BadFlags as u32, "{flags}");
    }
}

#[test]
fn one_event_of_one_session_is_sampled_and_what_another_program_uses_is_left_to_it() {
    let machine = machine("zen4-7700x", 0, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    let ops = EventRequest { event: Event::of(raw(0xC1)), ..cycles() };
    for other in [ops, fetches()] {
        let both = client.start_with(&mut engine, header(), &[cycles(), other]).header();
        assert_eq!((both.cause, both.detail[0]), (ErrorCode::IbsTaken as u32, 0));
    }
    let session = started(client, &mut engine, &header(), &[ops]);
    for other in [cycles(), fetches()] {
        let second = client.start_with(&mut engine, header(), &[other]).header();
        assert_eq!((second.cause, second.detail[0]), (ErrorCode::IbsTaken as u32, session));
    }
    overflow(&machine, &engine, 200);
    stopped(client, &mut engine, session, None);
    // Another program has it, and keeps it unless it is forced; it gets it back then.
    for (event, control, enable) in [(cycles(), CONTROL, ENABLE), (fetches(), FETCH_CONTROL, FETCH_ENABLE)] {
        let foreign = enable | 0x1234;
        machine.processor(0).model().wrmsr(control, foreign).unwrap();
        let third = client.start_with(&mut engine, header(), &[event]).header();
        let [register, value] = third.detail;
        let settings = enable | 0xFFFF;
        assert_eq!((third.cause, register), (ErrorCode::IbsInUse as u32, control.into()));
        assert_eq!(value & settings, foreign);
        let force = StartHeader { flags: flags::FORCE, ..header() };
        let session = started(client, &mut engine, &force, &[event]);
        overflow(&machine, &engine, 200);
        stopped(client, &mut engine, session, None);
        assert_eq!(machine.processor(0).model().rdmsr(control).unwrap() & settings, foreign);
    }
}

#[test]
fn a_session_goes_to_an_added_processor_whose_unit_is_free() {
    for (event, control, enable) in [(cycles(), CONTROL, ENABLE), (fetches(), FETCH_CONTROL, FETCH_ENABLE)] {
        for is_free in [true, false] {
            let machine = SimMachine::named("zen4-7700x", 2).with_active(1);
            let mut engine = engine(&machine);
            let client = Client::open(&mut engine, 1, 10);
            let foreign = if is_free { 0 } else { enable | 0x1234 };
            machine.processor(1).model().wrmsr(control, foreign).unwrap();
            (0..2).for_each(|processor| machine.processor(processor).model().set_place(USER, 0));
            let session = started(client, &mut engine, &header(), &[event]);
            overflow(&machine, &engine, 200);
            machine.add_processor(&mut engine);
            overflow_on(&machine, &engine, 1, 200);
            overflow(&machine, &engine, 200);
            let samples = by_sample(&fetched(client, &mut engine, session));
            let mut processors: Vec<u32> = samples.iter().map(|(sample, _)| sample.processor).collect();
            processors.sort_unstable();
            assert_eq!(processors, if is_free { &[0, 0, 1][..] } else { &[0, 0] });
            stopped(client, &mut engine, session, None);
            let settings = enable | 0xFFFF;
            assert_eq!(machine.processor(1).model().rdmsr(control).unwrap() & settings, foreign);
            assert_eq!(machine.processor(0).model().rdmsr(control).unwrap() & settings, 0);
        }
    }
}

/// What a program writes while ops are sampled is its own from then on, and the count is marked.
#[test]
fn a_program_that_takes_the_unit_has_it_and_no_more_ops_are_sampled() {
    let ops = (cycles(), CONTROL, ENABLE);
    let fetches = (fetches(), FETCH_CONTROL, FETCH_ENABLE);
    for (by_tick, (event, control, enable)) in [(false, ops), (true, ops), (false, fetches), (true, fetches)] {
        let machine = machine("zen5-9800x3d", 0, 1);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        machine.processor(0).model().set_place(USER, 0);
        let session = started(client, &mut engine, &header(), &[event]);
        overflow(&machine, &engine, 200);
        let foreign = enable | 0x7000;
        machine.processor(0).model().wrmsr(control, foreign).unwrap();
        if !by_tick {
            overflow(&machine, &engine, 200);
        }
        machine.tick_sampling(&engine, 0);
        overflow(&machine, &engine, 200);
        let [count] = stopped(client, &mut engine, session, None)[..] else { panic!() };
        assert_eq!((count.samples, count.unmet), (1, if by_tick { 1 } else { 2 }));
        assert_eq!(count.disturbed_register, control);
        assert_eq!(machine.processor(0).model().rdmsr(control).unwrap() & (enable | 0xFFFF), foreign);
    }
}

/// Returns the reads, writes and RDPMC of an interrupt of a session with this event, while the processor executes ops
/// of one kind.
fn accesses_of(name: &str, kind: OpKind, request: EventRequest) -> [u64; 3] {
    let machine = machine(name, 0, 1);
    let mut engine = engine(&machine);
    let client = Client::open(&mut engine, 1, 10);
    machine.processor(0).model().set_place(USER, 0);
    machine.processor(0).model().set_ops(vec![op(USER, kind)]);
    started(client, &mut engine, &header(), &[request]);
    overflow(&machine, &engine, 200);
    machine.run(0, Mode::User, &|_| INTERVAL.into());
    let before = machine.processor(0).model().accesses();
    machine.deliver(&engine, 0, &interrupted(200));
    let after = machine.processor(0).model().accesses();
    [after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc]
}

#[test]
fn an_interrupt_accesses_the_unit_as_often_as_is_documented() {
    let (store, load) = (OpKind::Store(access(1, From::L1)), OpKind::Load(access(1, From::L1)));
    for (name, event, kind, [reads, writes]) in [
        ("zen4-7700x", cycles(), OpKind::Other, [4, 1]),
        ("zen4-7700x", cycles(), store, [5, 1]),
        ("zen4-7700x", cycles(), load, [6, 1]),
        ("zen4-7700x", fetches(), OpKind::Other, [2, 1]),
        ("deneb-940", fetches(), OpKind::Other, [2, 1]),
        ("rome-7742", fetches(), OpKind::Other, [2, 2]),
    ] {
        let plain = accesses_of(name, kind, EventRequest { modes: modes::BOTH, flags: 0, ..event });
        let own = accesses_of(name, kind, event);
        assert_eq!(own, [plain[0] + reads, plain[1] + writes, plain[2]], "{name}, {kind:?}");
    }
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Overflow,
    Tick,
    Sleep { lost: bool },
    Other,
    Run(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Overflow),
        2 => Just(Step::Tick),
        1 => any::<bool>().prop_map(|lost| Step::Sleep { lost }),
        1 => Just(Step::Other),
        3 => any::<u16>().prop_map(Step::Run),
    ]
}

proptest! {
    /// Whatever happens in between: each sample is an op or a fetch of the processor, with what happened to it, each
    /// overflow is accounted, and the register is left as it was found.
    #[test]
    fn every_sample_is_one_of_what_the_processor_executed(
        steps in prop::collection::vec(step(), 1..40),
        (processor, interrupts) in (1..PROCESSORS.len(), 0..3_usize),
        frequency in prop::option::of(100..10_000_u32),
        both in any::<bool>(),
        (event, flags) in prop::sample::select(vec![(0x76_u16, 0), (0xC0, 0), (0xC1, 0), (0xC0, event_flags::FETCHES)]),
    ) {
        let (name, [encoding, encoding_of_fetches], _) = PROCESSORS[processor];
        let machine = machine(name, 0, 1);
        let mode = InterruptMode::ALL[interrupts];
        machine.processor(0).model().set_interrupt_mode(mode);
        let mut engine = engine(&machine);
        let client = Client::open(&mut engine, 1, 10);
        machine.processor(0).model().set_ops(ops());
        machine.processor(0).model().set_fetches(code());
        let modes = if both { modes::BOTH } else { modes::USER };
        let request = EventRequest {
            event: Event::of(raw(event)),
            modes: modes | modes::PRECISE,
            frequency: frequency.unwrap_or(0),
            flags,
            ..cycles()
        };
        let session = started(client, &mut engine, &header(), &[request]);
        let mut other = None;
        for step in steps {
            match step {
                Step::Overflow => overflow(&machine, &engine, 200),
                Step::Run(count) => machine.run(0, Mode::User, &|_| count.into()),
                Step::Tick => {
                    machine.pass(100_000);
                    machine.tick_sampling(&engine, 0);
                }
                Step::Sleep { lost } => {
                    machine.fall_asleep(&engine);
                    if lost {
                        machine.processor(0).model().lose_power();
                    }
                    machine.wake(&engine);
                }
                Step::Other => match other.take() {
                    None => {
                        let request = EventRequest { modes: modes::BOTH, ..cycles() };
                        other = Some(started(client, &mut engine, &header(), &[request]));
                    }
                    Some(session) => drop(stopped(client, &mut engine, session, None)),
                },
            }
        }
        let [count] = stopped(client, &mut engine, session, None)[..] else { panic!() };
        let records = fetched(client, &mut engine, session);
        let own: Vec<Record> =
            records.into_iter().filter(|record| matches!(record, Record::Precise(_) | Record::Access(_))).collect();
        let samples = by_sample(&own);
        prop_assert_eq!(samples.len() as u64, count.samples);
        for (sample, access) in &samples {
            match flags {
                0 => check(name, sample, access.as_ref(), modes, encoding),
                _ => check_fetch(name, sample, access.as_ref(), encoding_of_fetches),
            }
            prop_assert!(sample.thread == 200 || sample.thread == UNKNOWN);
        }
        let numbers: Vec<u64> = samples.iter().map(|(sample, _)| sample.number).collect();
        prop_assert!(numbers.is_sorted_by(|one, next| one < next));
        prop_assert_eq!(machine.processor(0).model().rdmsr(CONTROL).unwrap() & (ENABLE | 0xFFFF), 0);
        prop_assert_eq!(machine.processor(0).model().rdmsr(FETCH_CONTROL).unwrap() & (FETCH_ENABLE | 0xFFFF), 0);
    }
}
