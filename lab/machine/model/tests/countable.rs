//! Events that only some counters of a processor count. `extra.rs` has those of load latency, which need PEBS.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{EN, INT, Leaf, OS, USR, amd_leaves, cpuid, reset, version};
use model::{Mode, Processor};

const NEHALEM: u32 = 0x0001_06A5;
const WESTMERE: u32 = 0x0002_06C2;
const SANDY_BRIDGE: u32 = 0x0002_06A7;
const HASWELL: u32 = 0x0003_06C3;
const SKYLAKE: u32 = 0x0005_06E3;
const ICE_LAKE: u32 = 0x0007_06E5;
const ALDER_LAKE: u32 = 0x0009_0672;
const LUNAR_LAKE: u32 = 0x000B_06D1;
const BULLDOZER: u32 = 0x0060_0F12;

/// Creates an Intel processor with 8 general counters; `core_type` is that of a hybrid.
fn intel(signature: u32, core_type: Option<u32>) -> Processor {
    let mut leaves = Leaf { general: 8, ..version(5) }.leaves();
    leaves[1].1[0] = signature;
    if let Some(core_type) = core_type {
        leaves[0].1[0] = 0x1A;
        leaves.extend([(7, [0, 0, 0, 1 << 15]), (0x1A, [core_type << 24, 0, 0, 0])]);
    }
    reset(Processor::new(cpuid(leaves)))
}

fn bulldozer() -> Processor {
    let mut leaves = amd_leaves(1 << 23, [0; 4]);
    leaves.push((1, [BULLDOZER, 0, 0, 0]));
    Processor::new(cpuid(leaves))
}

/// Selects an event on `counters` counters, and returns a bit for each that counts.
fn counting(processor: &mut Processor, select: impl Fn(u32) -> u32, counters: u32, event: u64) -> u64 {
    for number in 0..counters {
        processor.wrmsr(select(number), EN | INT | USR | OS | event).unwrap();
    }
    processor.run(Mode::User, &|_| 1);
    let interrupting = processor.interrupting_counters().len();
    let counted: u64 = (0..counters).map(|number| processor.rdpmc(number).unwrap() << number).sum();
    assert_eq!(u64::try_from(interrupting).unwrap(), u64::from(counted.count_ones()), "{event:#x}");
    assert_eq!(processor.enabled_counters().len(), counters as usize, "{event:#x}");
    counted
}

#[test]
fn an_event_counts_on_the_counters_of_the_event_files() {
    for (signature, core_type, event, counters) in [
        (NEHALEM, None, 0x0151, 0x03),
        (NEHALEM, None, 0x010B, 0xFF),
        (WESTMERE, None, 0x0140, 0xFF),
        (WESTMERE, None, 0x0160, 0x01),
        (SANDY_BRIDGE, None, 0x0148, 0x04),
        (SANDY_BRIDGE, None, 0x0248, 0xFF),
        (SANDY_BRIDGE, None, 0x02A3, 0x04),
        (HASWELL, None, 0x02A3, 0xFF),
        (HASWELL, None, 0x08A3, 0x04),
        (HASWELL, None, 0x01C0, 0x02),
        (HASWELL, None, 0x00C0, 0xFF),
        (SKYLAKE, None, 0x01C0, 0x02),
        (SKYLAKE, None, 10 << 24 | 0x01C0, 0x0D),
        (SKYLAKE, None, 0x20D1, 0xFF),
        (ICE_LAKE, None, 0x20D1, 0x0F),
        (ICE_LAKE, None, 0x04A3, 0xFF),
        (ICE_LAKE, None, 0x00C4, 0xFF),
        (ALDER_LAKE, Some(0x40), 0x20D1, 0x0F),
        (ALDER_LAKE, Some(0x40), 0x02CD, 0x01),
        (ALDER_LAKE, Some(0x20), 0x20D1, 0xFF),
        (LUNAR_LAKE, Some(0x40), 0x0148, 0x04),
        (LUNAR_LAKE, Some(0x20), 0x0148, 0xFF),
        (0, None, 0x0148, 0xFF),
    ] {
        let mut processor = intel(signature, core_type);
        let found = counting(&mut processor, |number| 0x186 + number, 8, event);
        assert_eq!(found, counters, "{signature:#x} {core_type:?} {event:#x}");
    }
}

#[test]
fn an_event_of_family_15h_counts_on_the_counters_of_its_unit() {
    const EXTENDED: u64 = 1 << 32;
    for (event, counters) in [
        (0x0700, 0x38),
        (0x1100, 0x08),
        (0x0103, 0x08),
        (0x0301, 0x38),
        (0x0004, 0x38),
        (0x0304, 0x08),
        (0x0123, 0x07),
        (0x012D, 0x08),
        (0x012E, 0x09),
        (0x0131, 0x07),
        (0x0331, 0x00),
        (0x0141, 0x3F),
        (0x0143, 0x07),
        (0x017D, 0x07),
        (0x0180, 0x07),
        (0x018F, 0x01),
        (EXTENDED | 0x87, 0x01),
        (0x00C0, 0x3F),
        (EXTENDED | 0xC0, 0x38),
        (0x00D0, 0x07),
        (0x00DC, 0x3F),
        (EXTENDED | 0xD8, 0x3F),
        (0x01E0, 0x00),
    ] {
        let found = counting(&mut bulldozer(), |number| 0xC001_0200 + 2 * number, 6, event);
        assert_eq!(found, counters, "{event:#x}");
    }
}
