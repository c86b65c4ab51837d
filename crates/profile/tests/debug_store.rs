//! What processors have of the Debug Store, by the leaves of real ones.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use debug_store::pebs::Format;
use model::Processor;
use native_lab::ModelCpu;
use profile::debug_store::{Facilities, Lack, allows, examine};
use profile::source::RawEvent;
use profile::state::{Active, ActiveCell, CounterCell, CounterSet, CounterState};

/// The processor of an identity, as CPUID leaf 1 EAX names it if it is to be another.
fn processor(name: &str, signature: Option<u32>, format: Option<u64>) -> ModelCpu {
    let identity = processors::find(name).unwrap();
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
    let of = |precise, counters| Ok(Facilities { branches: Ok(()), precise, counters, modes: true });
    for (name, signature, format, facilities) in [
        ("core2-e5200", None, None, of(Ok(Format::Core2), 1)),
        ("nehalem-920", None, None, of(Ok(Format::Nehalem), 4)),
        ("haswell-4710mq", None, None, of(Ok(Format::Haswell), 4)),
        ("skylake-6600k", None, None, of(Ok(Format::Skylake), 4)),
        ("goldmont-plus-n4100", None, None, of(Ok(Format::Skylake), 4)),
        ("goldmont-plus-n4100", Some(0x506C9), None, of(Ok(Format::Skylake), 1)), // Goldmont
        ("goldmont-plus-n4100", Some(0x30673), Some(2), of(Ok(Format::Haswell), 1)), // Silvermont
        ("alder-lake-12900k", None, None, of(Ok(Format::Adaptive), 4)),
        ("alder-lake-12900k", None, Some(5), of(Ok(Format::Adaptive5), 4)),
        ("arrow-lake-245k", None, None, of(Err(Lack::UnknownFormat(6)), 4)),
        ("zen4-7700x", None, None, Err(Lack::NotIntel)),
        ("hygon-c86-7185", None, None, Err(Lack::NotIntel)),
        ("firecracker-cascade-lake", None, None, Err(Lack::NoDebugStore)),
        ("yonah-t2400", None, None, Err(Lack::NotWide)),
        ("netburst-cedarmill", None, None, Err(Lack::NotInInterface)),
    ] {
        let cpu = processor(name, signature, format);
        assert_eq!(examine(&cpu), facilities, "{name} {signature:x?}");
        assert_eq!(cpu.model().accesses().faulted, 0, "{name}");
    }
}

#[test]
fn what_is_shut_off_is_not_there() {
    for (misc_enable, branches, precise) in [
        (1 << 7, Ok(()), Ok(Format::Haswell)),
        (1 << 7 | 1 << 11, Err(Lack::BranchesUnavailable), Ok(Format::Haswell)),
        (1 << 7 | 1 << 12, Ok(()), Err(Lack::PebsUnavailable)),
    ] {
        let cpu = processor("haswell-4710mq", None, None);
        cpu.model().set_misc_enable(misc_enable);
        let found = examine(&cpu).unwrap();
        assert_eq!((found.branches, found.precise), (branches, precise), "{misc_enable:#x}");
    }
    let cpu = processor("haswell-4710mq", None, None);
    cpu.model().set_misc_enable(0);
    assert_eq!(examine(&cpu), Err(Lack::NoMonitoring));
}

#[test]
fn precise_are_the_architectural_events_that_are_counted_at_retirement() {
    let raw = |event, umask| RawEvent::NONE.with_event(event).with_umask(umask);
    for (what, event, since) in [
        ("instructions", raw(0xC0, 0), Some(Format::Core2)),
        ("branches", raw(0xC4, 0), Some(Format::Nehalem)),
        ("mispredictions", raw(0xC5, 0), Some(Format::Core2)),
        ("cycles", raw(0x3C, 0), None),
        ("another unit mask", raw(0xC0, 1), None),
        ("instructions by clock", raw(0xC0, 0).with_cmask(1), None),
        ("their beginnings", raw(0xC0, 0).with_edge(true), None),
        ("clocks without", raw(0xC0, 0).with_inv(true), None),
    ] {
        for format in Format::ALL {
            let expected = since.is_some_and(|since| format >= since);
            assert_eq!(allows(event.select(), format), expected, "{what}, {format:?}");
        }
    }
}

/// Of SDM Vol. 4, "CPUID Signature Values of DisplayFamily_DisplayModel".
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

/// A Haswell whose CPUID says otherwise; it has no IA32_PERF_CAPABILITIES if CPUID says that there is none.
#[test]
fn what_cpuid_does_not_promise_is_not_touched() {
    type Change = fn(u32, [u32; 4]) -> [u32; 4];
    let cases: [(&str, Change, Result<Format, Lack>); 4] = [
        ("no registers", |leaf, [a, b, c, d]| [a, b, c, d & without(leaf, 5)], Err(Lack::NoDebugStore)),
        ("no save area", |leaf, [a, b, c, d]| [a, b, c, d & without(leaf, 21)], Err(Lack::NoDebugStore)),
        ("no capabilities", |leaf, [a, b, c, d]| [a, b, c & without(leaf, 15), d], Ok(Format::Core2)),
        ("no leaf 0xA", |leaf, [a, b, c, d]| [if leaf == 0 { 9 } else { a }, b, c, d], Err(Lack::NotInInterface)),
    ];
    for (what, change, expected) in cases {
        let dump = processors::find("haswell-4710mq").unwrap().cpuid();
        let leaves = move |leaf, subleaf| change(leaf, dump.cpuid(leaf, subleaf));
        let cpu = ModelCpu::new(Processor::new(Box::new(leaves)).with_perf_capabilities(0x200));
        assert_eq!(examine(&cpu).and_then(|found| found.precise), expected, "{what}");
        assert_eq!(cpu.model().accesses().faulted, 0, "{what}");
    }
}

/// All bits but one of a register of leaf 1.
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
