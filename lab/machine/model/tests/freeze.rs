//! Counters that stand still: after an interrupt, and in System Management Mode. Delivery that masks the LVT entry.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{EN, INT, Leaf, OS, UNITS, USR, amd_v2, cpuid, version};
use model::{Mode, Processor};

const DEBUGCTL: u32 = 0x1D9;
const FREEZE_LBRS: u64 = 1 << 11;
const FREEZE_PERFMON: u64 = 1 << 12;
const FREEZE_WHILE_SMM: u64 = 1 << 14;
const STATUS: u32 = 0x38E;
const CONTROL: u32 = 0x38F;
const STATUS_RESET: u32 = 0x390;
const LBR_FRZ: u64 = 1 << 58;
const CTR_FRZ: u64 = 1 << 59;

/// Creates an Intel processor of family 6 without a Debug Store.
fn intel(number: u32, capabilities: Option<u64>) -> Processor {
    let mut leaves = Leaf { perf_capabilities: capabilities, ..version(number) }.leaves();
    leaves[1].1[0] = 0x0005_06E3;
    Processor::new(cpuid(leaves)).with_perf_capabilities(capabilities.unwrap_or_default())
}

/// Starts counter 0, which interrupts at the next event, and counter 1, which does not interrupt.
fn start(processor: &mut Processor) {
    for (number, value, select) in [(0, 0xFFFF_FFFF, EN | INT | USR | OS), (1, 0, EN | USR | OS)] {
        processor.wrmsr(0xC1 + number, value).unwrap();
        processor.wrmsr(0x186 + number, select | 0xC0).unwrap();
    }
    processor.wrmsr(CONTROL, 0b11).unwrap();
}

#[test]
fn debugctl_has_the_bits_that_version_and_capabilities_enumerate() {
    let freeze = FREEZE_LBRS | FREEZE_PERFMON;
    for (number, capabilities, valid) in [
        (1, None, Some(0b11)),
        (1, Some(0), Some(0b11)),
        (2, None, Some(0b11)),
        (2, Some(0), Some(0b11 | freeze)),
        (4, Some(1 << 12), Some(0b11 | freeze | FREEZE_WHILE_SMM)),
        (0, None, None),
    ] {
        let mut processor = intel(number, capabilities);
        assert_eq!(processor.rdmsr(DEBUGCTL).is_ok(), valid.is_some(), "{number}");
        let writable = (0..64).map(|bit| 1u64 << bit).filter(|&bit| processor.wrmsr(DEBUGCTL, bit).is_ok()).sum();
        assert_eq!(valid.unwrap_or_default(), writable, "{number} {capabilities:?}");
    }
}

#[test]
fn an_interrupt_freezes_what_debugctl_says() {
    for (number, control, status, enabled) in [
        (2, FREEZE_PERFMON, 0, 0),
        (3, FREEZE_PERFMON | FREEZE_LBRS, 0, 0),
        (3, FREEZE_LBRS, 0, 0b11),
        (4, 0, 0, 0b11),
        (4, FREEZE_LBRS, LBR_FRZ, 0b11),
        (4, FREEZE_PERFMON, CTR_FRZ, 0b11),
        (5, FREEZE_PERFMON | FREEZE_LBRS, CTR_FRZ | LBR_FRZ, 0b11),
    ] {
        let mut processor = intel(number, Some(0));
        processor.wrmsr(DEBUGCTL, control).unwrap();
        start(&mut processor);
        processor.run(Mode::User, &|_| 1);
        assert_eq!(processor.rdmsr(STATUS), Ok(status | 1), "{number} {control:#x}");
        assert_eq!(processor.rdmsr(CONTROL), Ok(enabled), "{number} {control:#x}");
        let is_frozen = control & FREEZE_PERFMON != 0;
        processor.run(Mode::User, &|_| 5);
        assert_eq!(processor.rdpmc(1), Ok(if is_frozen { 1 } else { 6 }), "{number} {control:#x}");
        assert!(processor.take_interrupt(), "{number} {control:#x}");
        // Clearing the overflow alone does not unfreeze.
        processor.wrmsr(STATUS_RESET, 1).unwrap();
        assert_eq!(processor.enabled_counters().is_empty(), is_frozen, "{number} {control:#x}");
        processor.wrmsr(STATUS_RESET, if number >= 4 { CTR_FRZ } else { 0 }).unwrap();
        processor.wrmsr(CONTROL, 0b11).unwrap();
        assert_eq!(processor.enabled_counters().len(), 2, "{number} {control:#x}");
    }
}

#[test]
fn an_overflow_that_does_not_interrupt_freezes_nothing() {
    let mut processor = intel(4, Some(0));
    processor.wrmsr(DEBUGCTL, FREEZE_PERFMON).unwrap();
    start(&mut processor);
    processor.wrmsr(0x186, EN | USR | OS | 0xC0).unwrap();
    processor.run(Mode::User, &|_| 1);
    assert_eq!((processor.rdmsr(STATUS), processor.enabled_counters().len()), (Ok(1), 2));
}

#[test]
fn counters_of_every_mode_count_in_smm_unless_they_are_frozen_there() {
    for (control, counted) in [(0, 7), (FREEZE_WHILE_SMM, 0), (FREEZE_PERFMON, 7)] {
        let mut processor = intel(4, Some(1 << 12));
        processor.wrmsr(DEBUGCTL, control).unwrap();
        for (number, mode) in [(0, USR), (1, OS), (2, USR | OS)] {
            processor.wrmsr(0x186 + number, EN | mode | 0xC0).unwrap();
        }
        processor.wrmsr(CONTROL, 0b111).unwrap();
        processor.run_in_smm(&|_| 7);
        assert_eq!([0, 1, 2].map(|number| processor.rdpmc(number)), [Ok(counted); 3], "{control:#x}");
        processor.run(Mode::Kernel, &|_| 1);
        assert_eq!(processor.rdpmc(1), Ok(counted + 1), "{control:#x}");
    }
    let mut amd = amd_v2();
    amd.wrmsr(0xC001_0200, EN | USR | 0xC0).unwrap();
    amd.run_in_smm(&|_| 3);
    assert_eq!(amd.rdpmc(0), Ok(3), "AMD has no such freeze");
}

#[test]
fn delivery_masks_the_entry_on_amd_on_request_only() {
    for unit in UNITS.iter().filter(|unit| unit.amd) {
        for masks in [false, true] {
            let mut processor = (unit.make)();
            if masks {
                processor.set_masked_on_delivery();
            }
            unit.set_select(&mut processor, 0, EN | INT | USR | OS | 0xC0);
            unit.load_negative(&mut processor, 0, 1);
            processor.run(Mode::User, &|_| 1);
            assert!(processor.take_interrupt());
            assert_eq!(processor.lvt() >> 16 & 1 == 1, masks);
        }
    }
}
