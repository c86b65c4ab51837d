//! Hypervisors that fault for values, drop bits, or ignore registers: no unguarded access ever faults, and no count is
//! wrong without a mark.
//!
//! The machine of these tests panics if an unguarded access faults, and if an unguarded write writes zero, or sets or
//! clears a bit, as no guarded one has.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;
use std::sync::OnceLock;

use cpuid_dumps::CpuIdentity;
use engine::{Engine, Interrupted};
use model::{Mode, Quirk};
use pmu::extra::Selector;
use pmu::first_access::Access;
use pmu::source::RawEvent;
use pmu::{Kind, ProfileInterface};
use proptest::prelude::*;
use protocol::{BRANCHES, CountRecord, ErrorCode, Event, EventRequest, ReplyHeader, StartHeader, flags, modes};
use simulation::{Client, ModelCpu, SimMachine};

/// Cases of a plain test. `PROPTEST_CASES` asks for more.
const CASES: u32 = 400;

const INTERVAL: u32 = 4_096;

/// Events in a step are multiples of it. What occurs between the accesses of the driver is less in a whole life, and
/// depends on the accesses, which differ under a hypervisor.
const UNIT: u64 = 1 << 15;

/// The processor that a hypervisor keeps from having all of its registers.
const LESS: u32 = 1;

const NOWHERE: Interrupted = Interrupted { ip: 1, process: 2, thread: 3, mode: protocol::Mode::User };

/// The LVT entry in x2APIC mode.
const X2APIC_LVT: u32 = 0x834;
/// IA32_PERF_GLOBAL_CTRL, and the one of AMD, which a reset sets.
const GLOBAL_CTRL: u32 = 0x38F;
const AMD_GLOBAL_CTL: u32 = 0xC000_0301;

/// What a hypervisor does.
#[derive(Debug, Clone, Copy)]
enum Kindness {
    Faults,
    FaultsAtZero,
    Drops,
    Ignores,
}

const fn quirk(register: u32, bits: u64, kindness: Kindness) -> Quirk {
    match kindness {
        Kindness::Faults => Quirk::Faults { register, bits },
        Kindness::FaultsAtZero => Quirk::FaultsAtZero { register },
        Kindness::Drops => Quirk::Drops { register, bits },
        Kindness::Ignores => Quirk::Ignores { register },
    }
}

/// What one life on a machine without a hypervisor needs, and what it counts.
struct Life {
    identity: &'static CpuIdentity,
    /// Whether the local APIC is in x2APIC mode, and the registers hold values of a program before.
    is_used: bool,
    events: Vec<EventRequest>,
    flags: u32,
    /// Registers that were written on a processor, each with the bits that were.
    registers: Vec<u32>,
    counts: Vec<CountRecord>,
}

const fn event(source: u64, interval: u32) -> EventRequest {
    EventRequest { event: Event::of(source), modes: modes::BOTH, interval, ..EventRequest::EMPTY }
}

const fn named(event: u16, umask: u16) -> RawEvent {
    RawEvent::new().with_event(event).with_umask(umask)
}

const fn raw(event: u16, umask: u16) -> EventRequest {
    self::event(named(event, umask).source().0, 0)
}

/// Returns the sessions of an identity: counts, samples, more events than counters, branches and precise events, events
/// with an extra register, and metrics.
fn sessions(identity: &'static CpuIdentity) -> Vec<(Vec<EventRequest>, u32)> {
    let machine = SimMachine::new(identity, 2);
    let engine = Engine::new(&machine, [0; 4]).unwrap();
    let hal = engine.sampler().hal();
    if hal.interface().counters() == 0 || !hal.boot.is_enumerated {
        return Vec::new();
    }
    let interval = if hal.interface().interrupts() { INTERVAL } else { 0 };
    let sources: Vec<u64> = identity.expected.supported.iter().copied().filter(|source| *source != 0).collect();
    let first = sources[0];
    let mut sessions = vec![
        (sources.iter().take(2).map(|source| event(*source, 0)).collect::<Vec<_>>(), 0),
        (vec![event(first, interval)], 0),
        (vec![event(first, interval), event(*sources.last().unwrap(), 0)], flags::FORCE),
        (sources.iter().take(12).map(|source| event(*source, 0)).collect(), flags::MULTIPLEX),
    ];
    if hal.interface().kind() == Kind::Emon && hal.interface().pmu_version() >= 2 {
        if identity.has_debug_store() {
            sessions.push((vec![event(first, INTERVAL), event(BRANCHES, 64)], 0));
            let precise = EventRequest { modes: modes::BOTH | modes::PRECISE, ..event(0x1A, INTERVAL) };
            sessions.push((vec![event(first, 0), precise], 0));
        }
        let offcore = |event, umask| {
            let source = named(event, umask).with_selector(Selector::OffcoreResponse as u8).source().0;
            EventRequest { event: Event { extra: 0x1_0001, ..Event::of(source) }, ..raw(event, umask) }
        };
        sessions.push((vec![offcore(0xB7, 0x01)], 0));
        sessions.push((vec![raw(0, 4), raw(0, 0x80)], 0));
    }
    sessions
}

/// Lives a life: two sessions one after the other and beside each other, with samples, a tick and a sleep. Returns the
/// final counts, or the refusal of the first session.
fn live(machine: &SimMachine, events: &[EventRequest], flags: u32) -> Result<Vec<CountRecord>, ReplyHeader> {
    let mut engine = Engine::new(machine, [0; 4]).unwrap();
    let client = Client::open(&mut engine, 1, 10);
    let samples = events.iter().any(|event| event.interval > 0);
    let header = StartHeader { flags, ring: if samples { 64 } else { 0 }, ..StartHeader::EMPTY };
    let mut sessions = Vec::new();
    let step = |engine: &mut Engine<&SimMachine>| {
        for processor in 0..2 {
            machine.run(processor, Mode::User, &|_| 5 * UNIT);
            machine.deliver(engine, processor, &NOWHERE);
            machine.run(processor, Mode::Kernel, &|_| 3 * UNIT);
        }
    };
    for _ in 0..2 {
        let answer = client.start_with(&mut engine, header, events).header();
        if answer.status == 0 {
            sessions.push(answer.detail[0]);
        } else if sessions.is_empty() {
            assert!(!machine.is_in_use(), "{answer:?}");
            assert!(machine.all().all(|cpu| cpu.model().enabled_counters().is_empty()), "{answer:?}");
            return Err(answer);
        }
        step(&mut engine);
        engine.accumulate_counts();
    }
    if samples {
        (0..2).for_each(|processor| machine.tick_sampling(&engine, processor));
    }
    step(&mut engine);
    machine.fall_asleep(&engine);
    machine.wake(&engine);
    step(&mut engine);
    let mut counts = Vec::new();
    for session in sessions {
        client.read(&mut engine, session);
        counts.extend(client.stop(&mut engine, session, None).records::<CountRecord>());
    }
    engine.shut_down();
    assert!(!machine.is_in_use());
    Ok(counts)
}

fn machine(identity: &'static CpuIdentity, is_used: bool) -> SimMachine {
    let machine = SimMachine::new(identity, 2);
    if !is_used {
        return machine;
    }
    let machine = machine.with_x2apic();
    machine.all().for_each(ModelCpu::leave_stale_values);
    machine
}

/// Returns every life that a machine without a hypervisor can live.
fn lives() -> &'static [Life] {
    static LIVES: OnceLock<Vec<Life>> = OnceLock::new();
    LIVES.get_or_init(|| {
        let mut lives = Vec::new();
        for identity in cpuid_dumps::all() {
            for ((events, flags), is_used) in
                sessions(identity).into_iter().flat_map(|session| [(session.clone(), false), (session, true)])
            {
                let machine = machine(identity, is_used);
                let Ok(counts) = live(&machine, &events, flags) else { continue };
                let guarded = machine.processor(LESS).guarded_accesses();
                let read = guarded.iter().filter(|(access, _)| matches!(access, Access::Read | Access::Write));
                let mut registers: Vec<u32> = read.map(|(_, register)| *register).collect();
                registers.sort_unstable();
                registers.dedup();
                lives.push(Life { identity, is_used, events, flags, registers, counts });
            }
        }
        lives
    })
}

/// Returns what identifies a count in both lives, and the count.
fn by_event(counts: &[CountRecord]) -> BTreeMap<(u64, u32, u32), &CountRecord> {
    counts.iter().map(|count| ((count.session, count.processor, count.index), count)).collect()
}

const REFUSALS: [ErrorCode; 10] = [
    ErrorCode::RegisterFault,
    ErrorCode::CountersDoNotWork,
    ErrorCode::NoCounterCounts,
    ErrorCode::NoFreeCounter,
    ErrorCode::UnsupportedSource,
    ErrorCode::NoDebugStore,
    ErrorCode::NotPrecise,
    ErrorCode::InterruptNotEnabled,
    ErrorCode::ForeignUse,
    ErrorCode::GroupTooLarge,
];

/// Says what a life was lived with, if a panic ends it.
struct Told<'a>(&'a Life, &'a [Quirk], &'a [Contained]);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(Life { identity, is_used, events, .. }, quirks, contained) = self;
            eprintln!("{}, {is_used}, {events:?}, {quirks:x?}, {contained:x?}", identity.name);
        }
    }
}

/// What a control register contains before the first session, and after each wake.
#[derive(Debug, Clone, Copy)]
struct Contained {
    register: u32,
    before: u64,
    after: u64,
}

/// Lives a life under a hypervisor, and judges its counts by those without one. Returns whether it was refused.
fn check(life: &Life, quirks: &[Quirk]) -> Result<bool, TestCaseError> {
    check_with(life, quirks, &[])
}

/// As [`check`], on a processor whose registers contain these values.
fn check_with(life: &Life, quirks: &[Quirk], contained: &[Contained]) -> Result<bool, TestCaseError> {
    let _told = Told(life, quirks, contained);
    let machine = machine(life.identity, life.is_used);
    let cpu = machine.processor(LESS);
    for Contained { register, before, .. } in contained {
        cpu.write_foreign(*register, *before);
    }
    cpu.model().set_firmware(contained.iter().map(|contained| (contained.register, contained.after)));
    cpu.model().set_quirks(quirks.iter().copied());
    let counts = match live(&machine, &life.events, life.flags) {
        Err(refused) => {
            let cause = ErrorCode::from_number(refused.cause);
            prop_assert!(cause.is_some_and(|cause| REFUSALS.contains(&cause)), "{cause:?}: {refused:?}");
            return Ok(true);
        }
        Ok(counts) => counts,
    };
    let wanted = by_event(&life.counts);
    for (key, count) in by_event(&counts) {
        let Some(wanted) = wanted.get(&key) else { continue };
        // The processor itself counts branches and the overflows of precise events, as far as it records them.
        let is_recorded = count.event.source == BRANCHES || count.modes & modes::PRECISE != 0;
        // Which events take turns, and whether one has had its turn, depends on the counters that are left.
        let is_turn = life.flags & flags::MULTIPLEX != 0;
        let is_right =
            count.count / UNIT == wanted.count / UNIT || count.disturbed_register != 0 || is_recorded || is_turn;
        prop_assert!(is_right, "{} instead of {}, unmarked: {count:?}", count.count, wanted.count);
    }
    Ok(false)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(CASES), ..ProptestConfig::default() })]

    #[test]
    fn no_unguarded_access_faults_and_no_count_is_wrong_without_a_mark(
        life in any::<prop::sample::Index>(),
        quirks in prop::collection::vec(
            (
                any::<prop::sample::Index>(),
                prop_oneof![0..64_u32, Just(14), Just(22), 32..36_u32, 58..60_u32],
                prop_oneof![
                    Just(Kindness::Faults),
                    Just(Kindness::FaultsAtZero),
                    Just(Kindness::Drops),
                    Just(Kindness::Ignores)
                ],
            ),
            1..=3,
        ),
    ) {
        let life = life.get(lives());
        let quirks: Vec<Quirk> = quirks.iter().map(|(register, bit, kindness)| {
            quirk(*register.get(&life.registers), 1 << bit, *kindness)
        }).collect();
        check(life, &quirks).map_err(|error| {
            let (name, is_used) = (life.identity.name, life.is_used);
            TestCaseError::fail(format!("{name}, {is_used}, {:?}, {quirks:x?}: {error}", life.events))
        })?;
    }
}

/// Registers of the processors with every bit, each alone: what the property finds at random.
#[test]
fn every_bit_of_every_register_of_some_processors() {
    let (mut cases, mut refused) = (0, 0);
    // Whole registers, of slots and metrics too.
    for life in lives().iter().filter(|life| life.identity.name == "ice-lake-sp-6330") {
        for register in &life.registers {
            let quirks = [Quirk::Ignores { register: *register }];
            check(life, &quirks).unwrap_or_else(|error| panic!("{:?}, {quirks:x?}: {error}", life.events));
        }
    }
    for name in ["skylake-6600k", "zen4-7700x", "amd-legacy", "p6-coppermine"] {
        for life in lives().iter().filter(|life| life.identity.name == name).take(4) {
            for register in &life.registers {
                // Of a machine that was used before, what differs from the other one.
                let differs = [X2APIC_LVT, GLOBAL_CTRL, AMD_GLOBAL_CTL].contains(register);
                let bits = if life.is_used && !differs { 0..0 } else { 0..64 };
                let each = |kindness| bits.clone().map(move |bit| quirk(*register, 1 << bit, kindness));
                let zero = quirk(*register, 0, Kindness::FaultsAtZero);
                for quirk in each(Kindness::Faults).chain(each(Kindness::Drops)).chain([zero]) {
                    let is_refused =
                        check(life, &[quirk]).unwrap_or_else(|error| panic!("{name}, {quirk:x?}: {error}"));
                    cases += 1;
                    refused += u32::from(is_refused);
                }
            }
        }
    }
    println!("{cases} cases, {refused} refused");
    assert!(refused > 100 && cases - refused > 1_000, "{cases} cases, {refused} refused");
}

/// Values of the control registers that other programs, a reset, firmware or a hypervisor set: freezes and branches in
/// IA32_DEBUGCTL, and counters in the global registers, also those that no session uses.
const CONTROLS: [(u32, &[u64]); 5] = [
    (0x1D9, &[0, 0x800, 0x1000, 0x1801, 0x4000]),
    (0x38D, &[0, 0xB000]),
    (GLOBAL_CTRL, &[0, 0b11, 0xFF, 1 << 35 | 1 << 48 | 0xF]),
    (0x600, &[0, 0x1_0000]),
    (AMD_GLOBAL_CTL, &[0, 0b11, 0x3F]),
];

#[test]
fn a_wake_that_leaves_other_values_lets_no_untried_value_reach_a_register() {
    let mut cases = 0;
    for name in ["skylake-6600k", "ice-lake-sp-6330", "nehalem-920", "haswell-4710mq", "zen4-7700x"] {
        for life in lives().iter().filter(|life| life.identity.name == name) {
            for (register, values) in CONTROLS.into_iter().filter(|(register, _)| life.registers.contains(register)) {
                for (before, after) in
                    values.iter().flat_map(|before| values.iter().map(move |after| (*before, *after)))
                {
                    let contained = [Contained { register, before, after }];
                    check_with(life, &[], &contained)
                        .unwrap_or_else(|error| panic!("{name}, {}, {contained:x?}: {error}", life.is_used));
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} cases");
    assert!(cases > 500, "{cases} cases");
}

/// A hypervisor without a counter of slots, or without the last general counter, whose firmware lets all counters
/// through.
#[test]
fn a_wake_sets_no_bit_of_the_global_control_that_the_first_accesses_left_out() {
    for (name, bits, before, after) in [
        ("ice-lake-sp-6330", 1 << 48, 0xFF, 1 << 48 | 0xFF),
        ("ice-lake-sp-6330", 1 << 35, 0xFF, 1 << 35 | 0xFF),
        ("skylake-6600k", 1 << 3, 0b111, 0xF),
        ("zen4-7700x", 1 << 3, 0b111, 0x3F),
    ] {
        let register = if name == "zen4-7700x" { AMD_GLOBAL_CTL } else { GLOBAL_CTRL };
        let mut counted = 0;
        for life in lives().iter().filter(|life| life.identity.name == name) {
            let contained = [Contained { register, before, after }];
            let is_refused = check_with(life, &[Quirk::Faults { register, bits }], &contained)
                .unwrap_or_else(|error| panic!("{name}, {bits:#x}, {}: {error}", life.is_used));
            counted += u32::from(!is_refused);
        }
        assert!(counted > 0 || name == "zen4-7700x", "{name}, {bits:#x}");
    }
}
