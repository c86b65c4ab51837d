//! The Debug Store features of processors, by the CPUID leaves of real ones.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use debug_store::pebs::Format;
use model::Processor;
use pmu::ProfileSource;
use pmu::debug_store::{Facilities, MissingFeature, examine};
use pmu::interface::emon::{PreciseEvents, SOURCES};
use pmu::source::RawEvent;
use pmu::state::{Active, ActiveCell, CounterCell, CounterSet, CounterState};
use simulation::ModelCpu;

/// Returns the processor of an identity, optionally with another signature (CPUID leaf 1 EAX) and PEBS format.
fn processor(name: &str, signature: Option<u32>, format: Option<u64>) -> ModelCpu {
    let identity = cpuid_dumps::find(name).unwrap();
    let dump = identity.cpuid();
    let leaves = move |leaf, subleaf| {
        let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
        [if leaf == 1 { signature.unwrap_or(eax) } else { eax }, ebx, ecx, edx]
    };
    let capabilities = format.map_or(identity.perf_capabilities(), |format| format << 8);
    ModelCpu::new(Processor::new(Box::new(leaves)).with_perf_capabilities(capabilities))
}

#[test]
fn facilities_are_those_of_the_processor() {
    use PreciseEvents::{GoldenCove, SandyBridge, Usual};
    let of = |precise, counters, events| Ok(Facilities { branches: Ok(()), precise, counters, events, modes: true });
    for (name, signature, format, facilities) in [
        ("core2-e5200", None, None, of(Ok(Format::Core2), 1, Usual)),
        ("nehalem-920", None, None, of(Ok(Format::Nehalem), 4, Usual)),
        ("haswell-4710mq", None, None, of(Ok(Format::Haswell), 4, SandyBridge)),
        ("skylake-6600k", None, None, of(Ok(Format::Skylake), 4, SandyBridge)),
        ("goldmont-plus-n4100", None, None, of(Ok(Format::Skylake), 4, Usual)),
        ("goldmont-plus-n4100", Some(0x506C9), None, of(Ok(Format::Skylake), 1, Usual)), // Goldmont
        ("goldmont-plus-n4100", Some(0x30673), Some(2), of(Ok(Format::Haswell), 1, Usual)), // Silvermont
        ("alder-lake-12900k", None, None, of(Ok(Format::Adaptive), 4, GoldenCove)),
        ("alder-lake-12900k", None, Some(5), of(Ok(Format::Adaptive5), 4, GoldenCove)),
        ("arrow-lake-245k", None, None, of(Err(MissingFeature::UnknownFormat(6)), 4, Usual)),
        ("zen4-7700x", None, None, Err(MissingFeature::NotIntel)),
        ("hygon-c86-7185", None, None, Err(MissingFeature::NotIntel)),
        ("firecracker-cascade-lake", None, None, Err(MissingFeature::NoDebugStore)),
        ("yonah-t2400", None, None, Err(MissingFeature::NotWide)),
        ("netburst-cedarmill", None, None, Err(MissingFeature::NotInInterface)),
    ] {
        let cpu = processor(name, signature, format);
        assert_eq!(examine(&cpu), facilities, "{name} {signature:x?}");
        assert_eq!(cpu.model().accesses().faulted, 0, "{name}");
    }
}

/// By Intel's event files: the models that `mapfile.csv` lists for the P cores of each, and E cores for comparison.
#[test]
fn precise_events_are_those_of_the_model_and_the_core_type() {
    let old = "2A 2D 3A 3E 3C 3F 45 46 3D 47 4F 56 4E 5E 8E 9E A5 A6 55";
    let golden = "97 9A B7 BA BF 8F CF AA AC B5 AD AE";
    let has = |list: &str, model: u32| list.split(' ').any(|number| number == format!("{model:02X}"));
    for model in 0..=0xFF {
        for family in [6, 15] {
            for core_type in [None, Some(0x40), Some(0x20)] {
                let signature = (model & 0xF0) << 12 | family << 8 | (model & 0xF) << 4 | 2;
                let dump = cpuid_dumps::find("alder-lake-12900k").unwrap().cpuid();
                let leaves = move |leaf, subleaf| {
                    let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
                    match (leaf, core_type) {
                        (1, _) => [signature, ebx, ecx, edx],
                        (7, None) => [eax, ebx, ecx, edx & !(1 << 15)],
                        (0x1A, Some(core_type)) => [core_type << 24, 0, 0, 0],
                        _ => [eax, ebx, ecx, edx],
                    }
                };
                let cpu = ModelCpu::new(Processor::new(Box::new(leaves)).with_perf_capabilities(0x400));
                let expected = match core_type {
                    _ if family != 6 => PreciseEvents::Usual,
                    _ if has(old, model) => PreciseEvents::SandyBridge,
                    None | Some(0x40) if has(golden, model) => PreciseEvents::GoldenCove,
                    _ => PreciseEvents::Usual,
                };
                assert_eq!(PreciseEvents::of(&cpu), expected, "family {family}, model {model:#x}, {core_type:x?}");
            }
        }
    }
}

#[test]
fn what_is_shut_off_is_not_there() {
    for (misc_enable, branches, precise) in [
        (1 << 7, Ok(()), Ok(Format::Haswell)),
        (1 << 7 | 1 << 11, Err(MissingFeature::BranchesUnavailable), Ok(Format::Haswell)),
        (1 << 7 | 1 << 12, Ok(()), Err(MissingFeature::PebsUnavailable)),
    ] {
        let cpu = processor("haswell-4710mq", None, None);
        cpu.model().set_misc_enable(misc_enable);
        let found = examine(&cpu).unwrap();
        assert_eq!((found.branches, found.precise), (branches, precise), "{misc_enable:#x}");
    }
    let cpu = processor("haswell-4710mq", None, None);
    cpu.model().set_misc_enable(0);
    assert_eq!(examine(&cpu), Err(MissingFeature::NoMonitoring));
}

#[test]
fn precise_are_the_architectural_events_that_are_counted_at_retirement() {
    use PreciseEvents::{GoldenCove, SandyBridge, Usual};
    let raw = |event, umask| RawEvent::NONE.with_event(event).with_umask(umask);
    let [core2, nehalem, adaptive] = [Format::Core2, Format::Nehalem, Format::Adaptive].map(Some);
    // The formats from which each processor records the event.
    for (what, event, since) in [
        ("instructions", raw(0xC0, 0), [core2, None, adaptive]),
        ("branches", raw(0xC4, 0), [nehalem, None, adaptive]),
        ("mispredictions", raw(0xC5, 0), [core2, None, adaptive]),
        ("instructions, precisely distributed", raw(0xC0, 1), [None, nehalem, None]),
        ("branches of Sandy Bridge", raw(0xC4, 4), [None, nehalem, None]),
        ("mispredictions of Sandy Bridge", raw(0xC5, 4), [None, nehalem, None]),
        ("cycles", raw(0x3C, 0), [None; 3]),
        ("another unit mask", raw(0xC0, 2), [None; 3]),
        ("instructions by clock", raw(0xC0, 0).with_cmask(1), [None; 3]),
        ("their beginnings", raw(0xC0, 0).with_edge(true), [None; 3]),
        ("clocks without", raw(0xC0, 0).with_inv(true), [None; 3]),
        ("the same of Sandy Bridge", raw(0xC0, 1).with_cmask(1), [None; 3]),
    ] {
        for (events, since) in [Usual, SandyBridge, GoldenCove].into_iter().zip(since) {
            for format in Format::ALL {
                let expected = since.is_some_and(|since| format >= since);
                let source = ProfileSource::of_raw(event);
                assert_eq!(events.allows(&source, format), expected, "{what}, {events:?}, {format:?}");
            }
        }
    }
}

#[test]
fn a_source_of_the_table_is_precise_by_whatever_encoding_records_it() {
    for events in [PreciseEvents::Usual, PreciseEvents::SandyBridge, PreciseEvents::GoldenCove] {
        let precise = SOURCES.iter().filter(|source| events.allows(source, Format::Adaptive));
        let names: Vec<_> = precise.map(|source| source.name).collect();
        let expected = [
            "TotalIssues",
            "BranchInstructions",
            "BranchMispredictions",
            "InstructionRetired",
            "BranchInstructionRetired",
            "BranchMispredictsRetired",
        ];
        assert_eq!(names, expected, "{events:?}");
    }
}

/// Models from SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel".
#[test]
fn one_counter_records_on_the_small_cores_up_to_goldmont_and_on_knights() {
    let silvermont = [0x37, 0x4A, 0x4D, 0x5A, 0x5D];
    let (airmont, knights, goldmont) = ([0x4C], [0x57, 0x85], [0x5C, 0x5F]);
    let alone = [&silvermont[..], &airmont, &knights, &goldmont].concat();
    for model in 0x0E..=0xFF {
        for family in [6, 15] {
            let signature = (model & 0xF0) << 12 | family << 8 | (model & 0xF) << 4 | 1;
            let cpu = processor("haswell-4710mq", Some(signature), None);
            let expected = if family == 6 && alone.contains(&model) { 1 } else { 4 };
            assert_eq!(examine(&cpu).unwrap().counters, expected, "family {family}, model {model:#x}");
        }
    }
}

/// A Haswell with modified CPUID. Without PDCM it has no IA32_PERF_CAPABILITIES.
#[test]
fn what_cpuid_does_not_promise_is_not_touched() {
    type Change = fn(u32, [u32; 4]) -> [u32; 4];
    let cases: [(&str, Change, Result<Format, MissingFeature>); 4] = [
        ("no registers", |leaf, [a, b, c, d]| [a, b, c, d & without(leaf, 5)], Err(MissingFeature::NoDebugStore)),
        ("no save area", |leaf, [a, b, c, d]| [a, b, c, d & without(leaf, 21)], Err(MissingFeature::NoDebugStore)),
        ("no capabilities", |leaf, [a, b, c, d]| [a, b, c & without(leaf, 15), d], Ok(Format::Core2)),
        (
            "no leaf 0xA",
            |leaf, [a, b, c, d]| [if leaf == 0 { 9 } else { a }, b, c, d],
            Err(MissingFeature::NotInInterface),
        ),
    ];
    for (what, change, expected) in cases {
        let dump = cpuid_dumps::find("haswell-4710mq").unwrap().cpuid();
        let leaves = move |leaf, subleaf| change(leaf, dump.cpuid(leaf, subleaf));
        let cpu = ModelCpu::new(Processor::new(Box::new(leaves)).with_perf_capabilities(0x200));
        assert_eq!(examine(&cpu).and_then(|found| found.precise), expected, "{what}");
        assert_eq!(cpu.model().accesses().faulted, 0, "{what}");
    }
}

/// Returns the register of leaf 1 with one bit cleared.
const fn without(leaf: u32, bit: u32) -> u32 {
    if leaf == 1 { !(1 << bit) } else { u32::MAX }
}

#[test]
fn a_counter_that_is_recorded_counts_and_does_not_interrupt_itself() {
    let sampling = CounterState::FREE.with_active(true).with_interrupt(true);
    let cells: [CounterCell; 3] = Default::default();
    cells[0].store(sampling.with_precise(true));
    cells[2].store(sampling);
    let active = ActiveCell::default();
    active.update(&cells);
    let of = |counters: &[u8]| counters.iter().copied().collect::<CounterSet>();
    assert_eq!(active.load(), Active { all: of(&[0, 2]), interrupting: of(&[2]) });
}
