//! `PERF_METRICS`: the metrics of the top-down method.

#![cfg(test)]

use super::common::{Leaf, cpuid, version};
use model::{CounterId, Mode, Processor, Selected};

const FIXED_CTR3: u32 = 0x30C;
const PERF_METRICS: u32 = 0x329;
const FIXED_CTR_CTRL: u32 = 0x38D;
const GLOBAL_STATUS: u32 = 0x38E;
const GLOBAL_CTRL: u32 = 0x38F;
const RDPMC_METRICS: u32 = 1 << 29;

/// `PERF_METRICS_AVAILABLE`.
const AVAILABLE: u64 = 1 << 15;
/// Fixed counter 3 and the metrics in the global registers.
const SLOTS: u64 = 1 << 35;
const METRICS: u64 = 1 << 48;
/// Fixed counter 3 in both modes.
const BOTH_MODES: u64 = 0b11 << 12;

/// Signatures of Ice Lake and of Sapphire Rapids.
const ICE_LAKE: u32 = 0x0007_06E5;
const SAPPHIRE_RAPIDS: u32 = 0x0008_06F8;

fn processor(signature: u32, capabilities: u64) -> Processor {
    let mut leaves = Leaf { perf_capabilities: Some(capabilities), ..version(5) }.leaves();
    for (number, values) in &mut leaves {
        if *number == 1 {
            values[0] = signature;
        }
    }
    Processor::new(cpuid(leaves)).with_perf_capabilities(capabilities)
}

/// Starts the counter and the metrics from zero, in the order that the processor needs.
fn start(processor: &mut Processor) {
    processor.wrmsr(FIXED_CTR3, 0).unwrap();
    processor.wrmsr(PERF_METRICS, 0).unwrap();
    processor.wrmsr(FIXED_CTR_CTRL, BOTH_MODES).unwrap();
    processor.wrmsr(GLOBAL_CTRL, SLOTS | METRICS).unwrap();
}

/// Slots of each metric in a run; the first four are level 1.
const RATES: [u64; 8] = [400, 100, 200, 300, 50, 70, 90, 110];

fn events(selected: Selected) -> u64 {
    match (selected.event, selected.umask) {
        (0xA4, 0x01) => RATES[..4].iter().sum(),
        (0x00, umask @ 0x80..=0x87) => RATES[usize::from(umask - 0x80)],
        _ => 0,
    }
}

fn bytes(processor: &mut Processor) -> [u8; 8] {
    let read = processor.rdmsr(PERF_METRICS).unwrap();
    assert_eq!(processor.rdpmc(RDPMC_METRICS), Ok(read));
    read.to_le_bytes()
}

/// The fractions of `RATES` in units of 1/255, rounded to the nearest.
const FRACTIONS: [u8; 8] = [102, 26, 51, 77, 13, 18, 23, 28];

#[test]
fn the_bytes_are_fractions_of_fixed_counter_3_and_the_ledger_has_the_slots() {
    for (signature, levels) in [(ICE_LAKE, 4), (SAPPHIRE_RAPIDS, 8)] {
        let mut processor = processor(signature, AVAILABLE);
        start(&mut processor);
        (0..3).for_each(|_| processor.run(Mode::User, &events));
        let mut expected = [0; 8];
        expected[..levels].copy_from_slice(&FRACTIONS[..levels]);
        assert_eq!(bytes(&mut processor), expected);
        assert_eq!(processor.rdmsr(FIXED_CTR3), Ok(3000));
        let metrics: Vec<_> = processor
            .ledger()
            .entries()
            .filter(|entry| matches!(entry.counter, CounterId::Metric(_)))
            .map(|entry| entry.counted)
            .collect();
        assert_eq!(metrics, RATES[..levels].iter().map(|rate| 3 * rate).collect::<Vec<_>>());
    }
}

#[test]
fn they_count_in_the_modes_of_fixed_counter_3_while_both_bits_are_set() {
    let mut processor = processor(ICE_LAKE, AVAILABLE);
    start(&mut processor);
    processor.wrmsr(FIXED_CTR_CTRL, 0b10 << 12).unwrap();
    processor.run(Mode::Kernel, &events);
    assert_eq!((processor.rdmsr(FIXED_CTR3), bytes(&mut processor)), (Ok(0), [0; 8]));
    for control in [0, METRICS] {
        processor.wrmsr(GLOBAL_CTRL, control).unwrap();
        processor.run(Mode::User, &events);
        assert_eq!((processor.rdmsr(FIXED_CTR3), bytes(&mut processor)), (Ok(0), [0; 8]));
    }
    processor.wrmsr(GLOBAL_CTRL, SLOTS | METRICS).unwrap();
    processor.run(Mode::User, &events);
    assert_eq!(bytes(&mut processor)[..4], FRACTIONS[..4]);
}

#[test]
fn they_are_wrong_unless_they_began_together_with_the_counter() {
    type Setup = fn(&mut Processor);
    let setups: [(&str, Setup); 6] = [
        ("no write", |processor| {
            processor.wrmsr(FIXED_CTR_CTRL, BOTH_MODES).unwrap();
            processor.wrmsr(GLOBAL_CTRL, SLOTS | METRICS).unwrap();
        }),
        ("the counter was written last", |processor| {
            start(processor);
            processor.wrmsr(FIXED_CTR3, 0).unwrap();
        }),
        ("the counter did not start from zero", |processor| {
            processor.wrmsr(FIXED_CTR3, 1).unwrap();
            processor.wrmsr(PERF_METRICS, 0).unwrap();
            processor.wrmsr(FIXED_CTR_CTRL, BOTH_MODES).unwrap();
            processor.wrmsr(GLOBAL_CTRL, SLOTS | METRICS).unwrap();
        }),
        ("the metrics did not start from zero", |processor| {
            processor.wrmsr(FIXED_CTR3, 0).unwrap();
            processor.wrmsr(PERF_METRICS, 1).unwrap();
            processor.wrmsr(FIXED_CTR_CTRL, BOTH_MODES).unwrap();
            processor.wrmsr(GLOBAL_CTRL, SLOTS | METRICS).unwrap();
        }),
        ("the metrics were written while they ran", |processor| {
            start(processor);
            processor.wrmsr(PERF_METRICS, 0).unwrap();
        }),
        ("the counter ran alone", |processor| {
            start(processor);
            processor.wrmsr(GLOBAL_CTRL, SLOTS).unwrap();
            processor.run(Mode::User, &events);
            processor.wrmsr(GLOBAL_CTRL, SLOTS | METRICS).unwrap();
        }),
    ];
    for (setup, set_up) in setups {
        let mut processor = processor(ICE_LAKE, AVAILABLE);
        set_up(&mut processor);
        processor.run(Mode::User, &events);
        assert_eq!(bytes(&mut processor)[..4], [0xFF; 4], "{setup}");
        processor.wrmsr(GLOBAL_CTRL, 0).unwrap();
        start(&mut processor);
        processor.run(Mode::User, &events);
        assert_eq!(bytes(&mut processor)[..4], FRACTIONS[..4], "{setup}, and a new start");
    }
}

#[test]
fn without_the_capability_the_register_and_its_enable_bit_fault() {
    let mut without = processor(ICE_LAKE, 0);
    assert!(without.rdmsr(PERF_METRICS).is_err());
    assert!(without.wrmsr(PERF_METRICS, 0).is_err());
    assert!(without.rdpmc(RDPMC_METRICS).is_err());
    assert!(without.wrmsr(GLOBAL_CTRL, METRICS).is_err());
    // Level 2 is reserved where there is none.
    let mut with = processor(ICE_LAKE, AVAILABLE);
    assert!(with.wrmsr(PERF_METRICS, 1 << 32).is_err());
    assert!(processor(SAPPHIRE_RAPIDS, AVAILABLE).wrmsr(PERF_METRICS, 1 << 32).is_ok());
    // Fixed counter 3 is as wide as the others.
    assert!(with.wrmsr(FIXED_CTR3, 1 << 48).is_err());
}

#[test]
fn an_overflow_of_the_counter_sets_the_bit_of_the_metrics() {
    let mut processor = processor(ICE_LAKE, AVAILABLE);
    start(&mut processor);
    processor.wrmsr(FIXED_CTR3, (1 << 48) - 1).unwrap();
    processor.run(Mode::User, &events);
    assert_eq!(processor.rdmsr(GLOBAL_STATUS), Ok(SLOTS | METRICS));
}
