//! What processors have of the Debug Store, by the leaves of real ones.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use debug_store::pebs::Format;
use model::Processor;
use native_lab::ModelCpu;
use profile::debug_store::{Facilities, Lack, allows, examine};
use profile::source::RawEvent;

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
