//! The Debug Store features of processors, by the CPUID leaves of real ones.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use debug_store::pebs::Format;
use model::Processor;
use pmu::ProfileSource;
use pmu::debug_store::{Facilities, MissingFeature, examine};
use pmu::interface::emon::{Microarchitecture, RecordedOperation, Recorders, SOURCES};
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
    use Microarchitecture::{
        Core2, CougarCove, CoyoteCove, Darkmont, GoldenCove, Goldmont, GoldmontPlus, Haswell, LionCove, Nehalem,
        Silvermont, Skylake,
    };
    let with = |precise, general, fixed, microarchitecture| {
        let recorders = Recorders { general, fixed };
        Ok(Facilities { branches: Ok(()), precise, recorders, microarchitecture, modes: true })
    };
    let of = |precise, general, microarchitecture| with(precise, general, false, microarchitecture);
    for (name, signature, format, facilities) in [
        ("core2-e5200", None, None, of(Ok(Format::Core2), 1, Core2)),
        ("nehalem-920", None, None, of(Ok(Format::Nehalem), 4, Nehalem)),
        ("haswell-4710mq", None, None, of(Ok(Format::Haswell), 4, Haswell)),
        ("skylake-6600k", None, None, of(Ok(Format::Skylake), 4, Skylake)),
        ("goldmont-plus-n4100", None, None, of(Ok(Format::Skylake), 4, GoldmontPlus)),
        ("goldmont-plus-n4100", Some(0x506C9), None, of(Ok(Format::Skylake), 1, Goldmont)),
        ("goldmont-plus-n4100", Some(0x30673), Some(2), of(Ok(Format::Haswell), 1, Silvermont)),
        ("alder-lake-12900k", None, None, with(Ok(Format::Adaptive), 10, true, GoldenCove)),
        ("alder-lake-12900k", None, Some(5), of(Ok(Format::Adaptive5), 10, GoldenCove)),
        ("arrow-lake-245k", None, None, with(Ok(Format::Adaptive6), 10, true, LionCove)),
        // Architectural PEBS, whatever format the processor reports.
        ("panther-lake-355", None, None, with(Ok(Format::Architectural), 10, true, CougarCove)),
        ("panther-lake-355-efficient", None, Some(4), with(Ok(Format::Architectural), 8, true, Darkmont)),
        ("nova-lake-derived", None, Some(0), with(Ok(Format::Architectural), 10, true, CoyoteCove)),
        ("diamond-rapids-derived", None, None, with(Ok(Format::Architectural), 10, true, CoyoteCove)),
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

/// The models of Intel's `mapfile.csv` (August 2026), of Core and Core 2 by the SDM, and Bartlett Lake (D7) by Linux,
/// each with its microarchitecture as a P core or alone, and as an E core.
#[test]
fn the_microarchitecture_is_that_of_the_model_and_the_core_type() {
    use Microarchitecture as M;
    let listed: &[(u16, &str, M, M)] = &[
        (6, "0E", M::Core, M::Core),
        (6, "0F 16 17 1D", M::Core2, M::Core2),
        (6, "2E 1E 1F 1A", M::Nehalem, M::Nehalem),
        (6, "2F 25 2C", M::Westmere, M::Westmere),
        (6, "37 4A 4D 4C 5A 5D", M::Silvermont, M::Silvermont),
        (6, "5C 5F", M::Goldmont, M::Goldmont),
        (6, "1C 26 27 36 35", M::Bonnell, M::Bonnell),
        (6, "2A 2D", M::SandyBridge, M::SandyBridge),
        (6, "3A 3E", M::IvyBridge, M::IvyBridge),
        (6, "3C 45 46 3F", M::Haswell, M::Haswell),
        (6, "3D 47 4F 56", M::Broadwell, M::Broadwell),
        (6, "4E 5E 8E 9E A5 A6 55", M::Skylake, M::Skylake),
        (6, "57 85", M::KnightsLanding, M::KnightsLanding),
        (6, "7A", M::GoldmontPlus, M::GoldmontPlus),
        (6, "7D 7E A7 8C 8D 6A 6C", M::IceLake, M::IceLake),
        (6, "86 96 9C", M::Tremont, M::Tremont),
        (6, "8F CF D7", M::GoldenCove, M::GoldenCove),
        (6, "AD AE", M::RedwoodCove, M::RedwoodCove),
        (6, "97 9A B7 BA BF", M::GoldenCove, M::Gracemont),
        (6, "BE", M::Gracemont, M::Gracemont),
        (6, "AA AC B5", M::RedwoodCove, M::Crestmont),
        (6, "AF B6", M::Crestmont, M::Crestmont),
        (6, "BD C5 C6", M::LionCove, M::Skymont),
        (6, "CC D5 E5", M::CougarCove, M::Darkmont),
        (6, "DD", M::Darkmont, M::Darkmont),
        (18, "01 03", M::CoyoteCove, M::ArcticWolf),
        (19, "01", M::CoyoteCove, M::CoyoteCove),
    ];
    let of = |signature: u32, core: Option<u32>| {
        let dump = cpuid_dumps::find("alder-lake-12900k").unwrap().cpuid();
        let leaves = move |leaf, subleaf| {
            let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
            match (leaf, core) {
                (1, _) => [signature, ebx, ecx, edx],
                (7, None) => [eax, ebx, ecx, edx & !(1 << 15)],
                (0x1A, Some(core)) => [core, 0, 0, 0],
                _ => [eax, ebx, ecx, edx],
            }
        };
        Microarchitecture::of(&ModelCpu::new(Processor::new(Box::new(leaves)).with_perf_capabilities(0x400)))
    };
    let mut found = 0;
    for model in 0..=0xFF_u32 {
        for family in [6_u16, 15, 18, 19] {
            let base = if family == 6 { 6 << 8 } else { 15 << 8 | u32::from(family - 15) << 20 };
            let signature = (model & 0xF0) << 12 | base | (model & 0xF) << 4 | 2;
            let has = |list: &str| list.split(' ').any(|number| number == format!("{model:02X}"));
            let entry = listed.iter().find(|(of, models, ..)| *of == family && has(models));
            let (alone, efficient) =
                entry.map_or((M::Unknown, M::Unknown), |(_, _, alone, efficient)| (*alone, *efficient));
            found += u32::from(entry.is_some());
            for (core, expected) in [(None, alone), (Some(0x40 << 24 | 1), alone), (Some(0x20 << 24 | 3), efficient)] {
                assert_eq!(of(signature, core), expected, "family {family}, model {model:#x}, {core:x?}");
            }
        }
    }
    assert_eq!(found, 83);
    let low_power = of(0xC0650, Some(0x20 << 24 | 2));
    assert_eq!(low_power, M::Crestmont, "the low-power cores of Arrow Lake H");
}

#[test]
fn disabled_recording_is_reported_as_missing() {
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

/// The encodings that Intel's event files (`PEBS` is not 0) give the instructions, branches and mispredictions of the
/// table of sources.
#[test]
fn a_source_of_the_table_is_recorded_with_the_encoding_of_its_generation() {
    use Microarchitecture as M;
    let prec_dist = ["C0/01", "C4/04", "C5/04"];
    let plain = ["C0/00", "C4/00", "C5/00"];
    let of = |microarchitecture| match microarchitecture {
        M::Nehalem => ["C0/01", "C4/04", ""],
        M::Westmere | M::SandyBridge | M::IvyBridge | M::Haswell | M::Broadwell | M::Skylake => prec_dist,
        M::Silvermont => ["", "C4/00", "C5/00"],
        M::Bonnell => ["C0/00", "", "C5/00"],
        _ => plain,
    };
    let precise = |source: &ProfileSource, microarchitecture: M| microarchitecture.records(source, Format::Adaptive);
    for microarchitecture in M::ALL {
        for (id, expected) in [2, 6, 0xB].into_iter().zip(of(microarchitecture)) {
            let source = SOURCES.iter().find(|source| source.source.0 == id).unwrap();
            let select = select_of_precise(source, microarchitecture);
            assert_eq!(select, expected, "{}, {microarchitecture:?}", source.name);
            assert_eq!(
                precise(source, microarchitecture),
                !expected.is_empty(),
                "{}, {microarchitecture:?}",
                source.name
            );
        }
        for id in [0x13, 0x0A, 0x1B, 0x1C] {
            let source = SOURCES.iter().find(|source| source.source.0 == id).unwrap();
            assert!(!precise(source, microarchitecture), "{}, {microarchitecture:?}", source.name);
        }
    }
}

/// Returns the encoding that records a source, or an empty text.
fn select_of_precise(source: &ProfileSource, microarchitecture: Microarchitecture) -> String {
    let form = microarchitecture.precise_form(source);
    form.map_or_else(String::new, |form| {
        let select = form.select(source.select);
        format!("{:02X}/{:02X}", select & 0xFF, select >> 8 & 0xFF)
    })
}

/// An unknown processor records the architectural events; every other the raw events that its file lists, without
/// CMASK, INV and edge.
#[test]
fn a_raw_event_is_recorded_with_its_own_encoding_or_not_at_all() {
    use Microarchitecture::{Core2, GoldenCove, Skylake, Unknown};
    let raw = |event, umask| RawEvent::new().with_event(event).with_umask(umask);
    let records = |microarchitecture: Microarchitecture, event, format| {
        microarchitecture.records(&ProfileSource::of_raw(event), format)
    };
    for (what, event, since) in [
        ("instructions", raw(0xC0, 0), Some(Format::Core2)),
        ("branches", raw(0xC4, 0), Some(Format::Nehalem)),
        ("mispredictions", raw(0xC5, 0), Some(Format::Core2)),
        ("instructions of Sandy Bridge", raw(0xC0, 1), None),
        ("cycles", raw(0x3C, 0), None),
        ("instructions by clock", raw(0xC0, 0).with_cmask(1), None),
        ("their beginnings", raw(0xC0, 0).with_edge(true), None),
        ("clocks without", raw(0xC0, 0).with_inv(true), None),
    ] {
        for format in Format::ALL {
            for microarchitecture in [Unknown, Core2] {
                let expected = since.is_some_and(|since| format >= since);
                assert_eq!(records(microarchitecture, event, format), expected, "{what}, {format:?}");
            }
        }
    }
    for (microarchitecture, event, expected) in [
        (Skylake, raw(0xD1, 0x20), true), // MEM_LOAD_RETIRED.L3_MISS
        (Skylake, raw(0xD1, 0x20).with_cmask(1), false),
        (Skylake, raw(0xC0, 0), false),
        (Skylake, raw(0xC0, 1), true),
        (Skylake, raw(0xB0, 1), false), // OFFCORE_REQUESTS.DEMAND_DATA_RD
        (Skylake, raw(0xCD, 1), true),  // LOAD_LATENCY, with a second register
        (Skylake, raw(0xC6, 1), true),  // FRONTEND_RETIRED, likewise
        (Skylake, raw(0xB7, 1), false), // OFFCORE_RESPONSE
        (GoldenCove, raw(0xD1, 0x20), true),
        (GoldenCove, raw(0xC0, 1), false),
    ] {
        assert_eq!(records(microarchitecture, event, Format::Adaptive), expected, "{microarchitecture:?}, {event:?}");
    }
}

/// Loads and stores of each generation, by event files: one event each, which is precise.
#[test]
fn records_have_accesses_of_the_loads_and_stores_of_the_generation_alone() {
    use Microarchitecture as M;
    use RecordedOperation::{Load, Store};
    let [above, latency, sample, all, small_load, small_store] =
        [(0x0B, 0x10), (0xCD, 0x01), (0xCD, 0x02), (0xD0, 0x82), (0xD0, 0x05), (0xD0, 0x06)];
    for microarchitecture in M::ALL {
        let expected = match microarchitecture {
            M::Nehalem | M::Westmere => vec![(above, Load)],
            M::Haswell | M::Broadwell | M::Skylake | M::IceLake => vec![(latency, Load), (all, Store)],
            M::SandyBridge
            | M::IvyBridge
            | M::GoldenCove
            | M::RedwoodCove
            | M::LionCove
            | M::CougarCove
            | M::CoyoteCove => vec![(latency, Load), (sample, Store)],
            M::Gracemont | M::Crestmont | M::Skymont | M::Darkmont => vec![(small_load, Load), (small_store, Store)],
            M::ArcticWolf => vec![(small_load, Load)],
            _ => Vec::new(),
        };
        let every = (0..=0xFF).flat_map(|event| (0..=0xFF).map(move |umask| (event, umask)));
        let found: Vec<_> = every
            .filter_map(|(event, umask)| {
                let raw = RawEvent::new().with_event(event).with_umask(umask);
                let operation = microarchitecture.recorded_operation(raw.select())?;
                let source = ProfileSource::of_raw(raw);
                // The event file of Arctic Wolf has neither yet.
                let is_precise = microarchitecture.records(&source, Format::Skylake);
                assert_eq!(is_precise, microarchitecture != M::ArcticWolf, "{microarchitecture:?} {event:#x}");
                let wide = raw.with_umask(umask | 0x100);
                assert_eq!(microarchitecture.recorded_operation(wide.select()), None, "UMASK2 is another event");
                Some(((event, umask), operation))
            })
            .collect();
        assert_eq!(found, expected, "{microarchitecture:?}");
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
            assert_eq!(examine(&cpu).unwrap().recorders.general, expected, "family {family}, model {model:#x}");
        }
    }
}

/// The steppings and revisions of Linux, `intel_sandybridge_quirk`, and Core 2 of model 0Fh, by
/// `intel_clovertown_quirk`.
#[test]
fn errata_and_old_microcode_turn_precise_records_off() {
    use MissingFeature::{Errata, OldMicrocode};
    for (signature, revision, precise, reads) in [
        (0x206A7, 0x27, Err(OldMicrocode), 1),
        (0x206A7, 0x28, Ok(Format::Nehalem), 1),
        (0x206A6, 0x7FFF_FFFF, Err(OldMicrocode), 1),
        (0x206D6, 0x617, Err(OldMicrocode), 1),
        (0x206D6, 0x618, Ok(Format::Nehalem), 1),
        (0x206D7, 0x70B, Err(OldMicrocode), 1),
        (0x206D7, 0x70C, Ok(Format::Nehalem), 1),
        (0x206D5, 0x7FFF_FFFF, Err(OldMicrocode), 1),
        (0x006FB, 0xBA, Err(Errata), 0),
        (0x1067A, 0, Ok(Format::Nehalem), 0), // Penryn
        (0x306A9, 0, Ok(Format::Nehalem), 0),
    ] {
        let cpu = processor("haswell-4710mq", Some(signature), Some(1));
        cpu.model().set_microcode(revision);
        let found = examine(&cpu).unwrap();
        assert_eq!((found.branches, found.precise), (Ok(()), precise), "{signature:#x}, {revision:#x}");
        let accesses = cpu.model().accesses();
        // IA32_MISC_ENABLE, IA32_PERF_CAPABILITIES, and for Sandy Bridge IA32_BIOS_SIGN_ID.
        assert_eq!((accesses.rdmsr, accesses.wrmsr, accesses.faulted), (2 + reads, 0, 0), "{signature:#x}");
    }
}

/// A Haswell with modified CPUID. Without PDCM it has no IA32_PERF_CAPABILITIES.
#[test]
fn registers_that_cpuid_does_not_enumerate_are_not_accessed() {
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
    let sampling = CounterState::FREE.with_active(true).with_interval(1);
    let cells: [CounterCell; 3] = Default::default();
    cells[0].store(sampling.with_precise(true));
    cells[2].store(sampling);
    let active = ActiveCell::default();
    active.update(&cells);
    let of = |counters: &[u8]| counters.iter().copied().collect::<CounterSet>();
    assert_eq!(active.load(), Active { all: of(&[0, 2]), interrupting: of(&[2]) });
}
