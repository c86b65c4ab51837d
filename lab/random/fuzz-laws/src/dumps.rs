//! CPUID dumps, and processors that are known only by their CPUID.

use cpuid_dump::{Dump, MAX_LEAVES, ParseError};
use pmu::hal::Hal;
use pmu::state::CounterSet;
use pmu::{Cpuid, ProcessorIndex};
use raw_cpuid::CpuIdResult;

/// The processor of a dump.
struct Dumped<'a>(&'a Dump);

impl Cpuid for Dumped<'_> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [eax, ebx, ecx, edx] = self.0.cpuid(leaf, subleaf);
        CpuIdResult { eax, ebx, ecx, edx }
    }
}

/// A dump is parsed as it is printed, has a bounded number of leaves, and returns leaves that it has, or zero. An error
/// names a line of the text. Whatever the leaves are, the processor gets an interface whose sources have only counters
/// that it has.
pub fn cpuid_dump(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let dump = match Dump::parse(&text) {
        Ok(dump) => dump,
        Err(error) => {
            if let ParseError::Line { line, .. } = error {
                assert!((1..=text.lines().count()).contains(&line), "line {line}");
            }
            return;
        }
    };
    let leaves: Vec<_> = dump.leaves().collect();
    assert!((1..=MAX_LEAVES).contains(&leaves.len()));
    assert_eq!(Dump::parse(&dump.to_string()).as_ref(), Ok(&dump), "printed and parsed again");
    for (leaf, subleaf, registers) in &leaves {
        let found = dump.cpuid(*leaf, *subleaf);
        assert!(found == *registers || found == [0; 4], "leaf {leaf:#x} {subleaf:#x}");
    }
    let Ok(hal) = Hal::<()>::new(&Dumped(&dump), 1) else { return };
    let present = CounterSet::first(hal.interface().indexes());
    for information in hal.source_list() {
        assert!(information.counters.without(present).is_empty(), "{information:?} has counters beside {present:?}");
        let range = information.range;
        assert!(range.minimum <= range.maximum, "{information:?}");
    }
    assert_eq!(hal.total(ProcessorIndex::BOOT, 0), 0, "nothing has counted");
}
