//! Counters with errata count wrongly, unless they are used as the errata demand.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{EN, Leaf, USR, cpuid, reset, version};
use model::{CpuidFunction, Mode, Processor};

const NEHALEM: u32 = 0x0001_06A5;
const SANDY_BRIDGE: u32 = 0x0002_06A7;
const BROADWELL: u32 = 0x0004_06F1;
const SKYLAKE: u32 = 0x0005_06E3;

/// An event that is free of errata, MEM_LOAD_UOPS_RETIRED.L1_HIT, and the select register of an event.
const BRANCHES: u64 = 0xC4;
const LOADS: u64 = 0x01D1;
const fn select(event: u64) -> u64 {
    EN | USR | event
}

/// Leaves of a processor with four general counters; `features` are those of leaf 7, EDX.
fn leaves(signature: u32, features: u32) -> CpuidFunction {
    let mut leaves = Leaf { general: 4, ..version(3) }.leaves();
    leaves[1].1[0] = signature;
    leaves.push((7, [0, 0, 0, features]));
    cpuid(leaves)
}

fn run(processor: &mut Processor, events: u64) {
    processor.run(Mode::User, &|_| events);
}

#[test]
fn counters_of_nehalem_count_half_without_a_reset_since_any_of_them_counted() {
    let mut processor = Processor::new(leaves(NEHALEM, 0));
    processor.wrmsr(0x186, select(BRANCHES)).unwrap();
    run(&mut processor, 1_000);
    assert_eq!(processor.rdpmc(0), Ok(500));
    assert_eq!(processor.ledger().entries().map(|entry| entry.counted).sum::<u64>(), 1_000, "what happened");

    processor.wrmsr(0x186, 0).unwrap();
    let mut processor = reset(processor);
    for counter in 0..2 {
        processor.wrmsr(0x186 + counter, select(BRANCHES)).unwrap();
    }
    run(&mut processor, 1_000);
    assert_eq!((processor.rdpmc(0), processor.rdpmc(1)), (Ok(1_000), Ok(1_000)), "both after one reset");

    processor.wrmsr(0x188, select(BRANCHES)).unwrap();
    run(&mut processor, 1_000);
    assert_eq!((processor.rdpmc(0), processor.rdpmc(2)), (Ok(2_000), Ok(500)), "one beside two that count");

    for counter in 0..3 {
        processor.wrmsr(0x186 + counter, 0).unwrap();
    }
    run(&mut processor, 1);
    processor.wrmsr(0x189, select(BRANCHES)).unwrap();
    run(&mut processor, 1_000);
    assert_eq!(processor.rdpmc(3), Ok(500), "idle since the reset");
}

#[test]
fn time_between_the_reset_and_the_set_up_does_not_matter_on_nehalem() {
    let mut processor = reset(Processor::new(leaves(NEHALEM, 0)));
    run(&mut processor, 1);
    processor.wrmsr(0x186, select(BRANCHES)).unwrap();
    run(&mut processor, 1_000);
    assert_eq!(processor.rdpmc(0), Ok(1_000));
}

#[test]
fn counters_of_nehalem_without_a_reset_still_advance_event_by_event() {
    let mut processor = Processor::new(leaves(NEHALEM, 0));
    processor.wrmsr(0x186, select(BRANCHES)).unwrap();
    for _ in 0..10 {
        run(&mut processor, 1);
    }
    assert_eq!(processor.rdpmc(0), Ok(5));
}

#[test]
fn a_write_that_faults_does_not_start_a_counter_of_nehalem() {
    const RESERVED: u64 = 1 << 35;
    let mut processor = reset(Processor::new(leaves(NEHALEM, 0)));
    processor.wrmsr(0x186, select(BRANCHES)).unwrap();
    run(&mut processor, 1_000);
    processor.wrmsr(0x186, select(BRANCHES) | RESERVED).unwrap_err();
    run(&mut processor, 1_000);
    assert_eq!(processor.rdpmc(0), Ok(2_000));
}

#[test]
fn loads_of_sandy_bridge_leak_to_the_same_counter_of_the_other_thread_if_it_is_on() {
    for (event, theirs, own, leaked) in
        [(LOADS, 0xC1, 1_000, 0), (LOADS, 0xC0, 500, 500), (BRANCHES, 0xC0, 1_000, 0), (0x01D4, 0xC0, 1_000, 0)]
    {
        let mut first = Processor::new(leaves(SANDY_BRIDGE, 0));
        let mut second = first.other_thread(leaves(SANDY_BRIDGE, 0)).unwrap();
        first.wrmsr(0x186, select(event)).unwrap();
        second.wrmsr(theirs + 0x186 - 0xC0, select(BRANCHES)).unwrap();
        run(&mut first, 1_000);
        let corrupted = [0, 1].map(|counter| second.rdpmc(counter).unwrap());
        assert_eq!((first.rdpmc(0).unwrap(), corrupted), (own, [leaked, 0]), "{event:#x}");
        run(&mut second, 7);
        let sum = second.rdpmc(0).unwrap() + second.rdpmc(1).unwrap();
        assert_eq!(sum, leaked + 7, "it stays in the counter");
    }
}

#[test]
fn the_microcode_of_skylake_uses_counter_3_unless_all_transactions_abort() {
    for (features, is_lost) in [(0, false), (1 << 13, true), (1 << 13 | 1 << 11, false)] {
        let mut processor = Processor::new(leaves(SKYLAKE, features));
        for counter in 2..4 {
            processor.wrmsr(0x186 + counter, select(BRANCHES)).unwrap();
        }
        run(&mut processor, 10);
        assert_eq!(processor.rdpmc(2), Ok(10));
        assert_eq!(processor.rdpmc(3) != Ok(10), is_lost, "{features:#x}");
    }
}

#[test]
fn counters_4_to_7_of_broadwell_count_nothing_in_user_mode_alone() {
    const OS: u64 = 1 << 17;
    for (signature, counts) in [(BROADWELL, 0), (SKYLAKE, 10)] {
        for (modes, counted) in [(USR, counts), (USR | OS, 10), (OS, 0)] {
            let mut leaves = Leaf { general: 8, ..version(3) }.leaves();
            leaves[1].1[0] = signature;
            let mut processor = Processor::new(cpuid(leaves));
            for counter in 0..8 {
                processor.wrmsr(0x186 + counter, EN | modes | BRANCHES).unwrap();
            }
            run(&mut processor, 10);
            let expected = if modes == OS { 0 } else { 10 };
            assert_eq!([0, 3].map(|counter| processor.rdpmc(counter)), [Ok(expected); 2], "{signature:#x}");
            assert_eq!([4, 7].map(|counter| processor.rdpmc(counter)), [Ok(counted); 2], "{signature:#x} {modes:#x}");
        }
    }
}
