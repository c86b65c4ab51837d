//! Events of the northbridge, which the cores of a node count with the same counters up to family 14h (BKDG for family
//! 10h, "Performance Monitor Events").

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{EN, OS, USR, amd_leaves, cpuid};
use model::{CpuidFunction, Mode, Processor};

/// `PerfEvtSel0`, and events of the northbridge (DRAM accesses) and of the core (retired instructions).
const SELECT: u32 = 0xC001_0000;
const DRAM: u64 = EN | USR | OS | 0x07E0;
const INSTRUCTIONS: u64 = EN | USR | OS | 0xC0;

const FAMILY_10: u32 = 0x0010_0F91;
const FAMILY_14: u32 = 0x0050_0F10;
const FAMILY_15: u32 = 0x0060_0F12;
const FAMILY_16: u32 = 0x0070_0F01;

fn leaves(signature: u32) -> CpuidFunction {
    let mut leaves = amd_leaves(0, [0; 4]);
    for (leaf, registers) in &mut leaves {
        if *leaf == 0x8000_0001 {
            registers[0] = signature;
        }
    }
    cpuid(leaves)
}

/// Selects events in counters of two cores of a node, and returns what the first core counts.
fn counted(first: (u32, u64), second: (u32, u64)) -> u64 {
    let mut core = Processor::new(leaves(FAMILY_10));
    let mut other = core.other_core(leaves(FAMILY_10)).unwrap();
    other.wrmsr(SELECT + second.0, second.1).unwrap();
    core.wrmsr(SELECT + first.0, first.1).unwrap();
    core.run(Mode::User, &|_| 1_000);
    core.rdpmc(first.0).unwrap()
}

#[test]
fn two_cores_of_a_node_disturb_each_other_in_the_same_counter_only() {
    assert_eq!(counted((1, DRAM), (1, DRAM)), 2_000);
    assert_eq!(counted((1, DRAM), (2, DRAM)), 1_000);
    assert_eq!(counted((1, DRAM), (1, INSTRUCTIONS)), 1_000);
    assert_eq!(counted((1, INSTRUCTIONS), (1, DRAM)), 1_000);
    assert_eq!(counted((1, DRAM), (1, DRAM & !EN)), 1_000);
}

#[test]
fn a_core_that_stops_no_longer_disturbs_and_another_node_never_does() {
    let mut core = Processor::new(leaves(FAMILY_10));
    let mut others: Vec<_> = (0..5).map(|_| core.other_core(leaves(FAMILY_10)).unwrap()).collect();
    let mut other_node = Processor::new(leaves(FAMILY_10));
    others.iter_mut().chain([&mut other_node, &mut core]).for_each(|core| core.wrmsr(SELECT, DRAM).unwrap());
    core.run(Mode::User, &|_| 100);
    assert_eq!(core.rdpmc(0), Ok(600));
    for core in &mut others {
        core.wrmsr(SELECT, 0).unwrap();
    }
    core.run(Mode::User, &|_| 100);
    assert_eq!(core.rdpmc(0), Ok(700));
    other_node.run(Mode::User, &|_| 100);
    assert_eq!(other_node.rdpmc(0), Ok(100));
}

#[test]
fn from_family_15h_on_cores_share_no_counters() {
    let shares = |signature| Processor::new(leaves(signature)).other_core(leaves(signature)).is_some();
    assert_eq!([FAMILY_10, FAMILY_14, FAMILY_15, FAMILY_16].map(shares), [true, true, false, false]);
}
