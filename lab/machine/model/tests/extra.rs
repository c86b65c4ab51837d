//! Extra registers: which processors have them, and what their events count.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{EN, Leaf, USR, cpuid, reset, version};
use model::{CpuidFunction, Mode, Processor, Selected};

const NEHALEM: u32 = 0x0001_06A5;
const WESTMERE: u32 = 0x0002_06C2;
const SANDY_BRIDGE: u32 = 0x0002_06A7;
const SANDY_BRIDGE_EP: u32 = 0x0002_06D7;
const SKYLAKE: u32 = 0x0005_06E3;
const SAPPHIRE_RAPIDS: u32 = 0x0008_06F4;
const TREMONT: u32 = 0x0009_06C0;

const NOVA_LAKE: u32 = 0x0030_0F10;

const OMR_0: u32 = 0x3E0;
const RSP_0: u32 = 0x1A6;
const RSP_1: u32 = 0x1A7;
const LATENCY: u32 = 0x3F6;
const FRONT_END: u32 = 0x3F7;

fn leaves(signature: u32) -> CpuidFunction {
    let mut leaves = Leaf { general: 4, ..version(3) }.leaves();
    leaves[1].1[0] = signature;
    cpuid(leaves)
}

fn processor(signature: u32) -> Processor {
    Processor::new(leaves(signature))
}

/// Counts 1,000 events of each kind on counter 0.
fn counted(processor: &mut Processor, event: u64) -> u64 {
    processor.wrmsr(0x186, EN | USR | event).unwrap();
    processor.wrmsr(0xC1, 0).unwrap();
    processor.run(Mode::User, &|_| 1_000);
    processor.rdpmc(0).unwrap()
}

#[test]
fn off_core_responses_are_counted_only_with_a_request_and_a_response() {
    for (signature, second, request, response) in
        [(WESTMERE, 0x01BB, 1, 0x100), (SANDY_BRIDGE, 0x01BB, 1, 0x1_0000), (TREMONT, 0x02B7, 1, 0x1_0000)]
    {
        let mut processor = processor(signature);
        for (event, register, other) in [(0x01B7, RSP_0, RSP_1), (second, RSP_1, RSP_0)] {
            for (value, events) in [(0, 0), (request, 0), (response, 0), (request | response, 1_000)] {
                processor.wrmsr(register, value).unwrap();
                processor.wrmsr(other, 0).unwrap();
                processor = reset(processor);
                assert_eq!(counted(&mut processor, event), events, "{signature:#x} {event:#x} {value:#x}");
                processor.wrmsr(register, 0).unwrap();
                processor.wrmsr(other, value).unwrap();
                assert_eq!(counted(&mut processor, event), 0, "by the other register");
            }
        }
        processor = reset(processor);
        assert_eq!(counted(&mut processor, 0x04B7), 1_000, "other events need no register");
    }
}

#[test]
fn off_module_responses_are_counted_by_the_register_of_their_unit_mask() {
    let mut processor = processor(NOVA_LAKE);
    assert!(processor.rdmsr(RSP_0).is_err(), "it has no off-core response registers");
    for number in [0x2A, 0xD6] {
        for register in 0..4 {
            let event = 0x100 << register | number;
            for (value, events) in [(0, 0), (1, 0), (1 << 62, 0), (1 | 1 << 62, 1_000)] {
                processor.wrmsr(OMR_0 + register, value).unwrap();
                assert_eq!(counted(&mut processor, event), events, "{event:#x} {value:#x}");
            }
            processor.wrmsr(OMR_0 + register, 0).unwrap();
            processor.wrmsr(OMR_0 + (register + 1) % 4, 1 | 1 << 62).unwrap();
            assert_eq!(counted(&mut processor, event), 0, "by another register");
            processor.wrmsr(OMR_0 + (register + 1) % 4, 0).unwrap();
        }
    }
    assert_eq!(counted(&mut processor, 0x102A), 1_000, "other unit masks need no register");
}

#[test]
fn a_front_end_event_is_counted_only_with_a_value() {
    let mut processor = processor(SKYLAKE);
    assert_eq!(counted(&mut processor, 0x01C6), 0);
    processor.wrmsr(FRONT_END, 0x15).unwrap();
    assert_eq!(counted(&mut processor, 0x01C6), 1_000);
}

/// Returns a processor with PEBS in this record format.
fn with_pebs(signature: u32, format: u64) -> Processor {
    let mut leaves = Leaf { general: 4, perf_capabilities: Some(0), ..version(4) }.leaves();
    leaves[1].1 = [signature, 0, 1 << 15 | 1 << 2, 1 << 21];
    Processor::new(cpuid(leaves)).with_perf_capabilities(format << 8)
}

#[test]
fn load_latency_is_measured_only_on_a_counter_that_pebs_measures() {
    let mut processor = with_pebs(SKYLAKE, 3);
    for (enable, threshold, events) in
        [(0, 30, 0), (1, 30, 0), (1 << 32, 30, 0), (1 | 1 << 33, 30, 0), (1 | 1 << 32, 0, 0), (1 | 1 << 32, 30, 1_000)]
    {
        processor.wrmsr(0x3F1, enable).unwrap();
        processor.wrmsr(LATENCY, threshold).unwrap();
        assert_eq!(counted(&mut processor, 0x01CD), events, "{enable:#x} {threshold}");
    }
}

#[test]
fn load_latency_is_measured_on_the_counters_of_the_event_files() {
    for (signature, format, event, counters) in
        [(NEHALEM, 1, 0x100B, 0x8), (SANDY_BRIDGE, 1, 0x01CD, 0x8), (SKYLAKE, 3, 0x01CD, 0xF)]
    {
        let mut processor = reset(with_pebs(signature, format));
        processor.wrmsr(LATENCY, 30).unwrap();
        processor.wrmsr(0x3F1, 0xF_0000_000F).unwrap();
        for counter in 0..4 {
            processor.wrmsr(0x186 + counter, EN | USR | event).unwrap();
        }
        processor.run(Mode::User, &|_| 1);
        let counted: u64 = (0..4).map(|counter| processor.rdpmc(counter).unwrap() << counter).sum();
        assert_eq!(counted, counters, "{signature:#x}");
    }
}

#[test]
fn the_value_reaches_the_ledger_and_the_source_of_events() {
    let mut processor = processor(SANDY_BRIDGE);
    processor.wrmsr(RSP_0, 0x1_0001).unwrap();
    processor.wrmsr(RSP_1, 0x1_0002).unwrap();
    for (counter, event) in [(0, 0x01B7), (1, 0x01BB), (2, 0x00C4)] {
        processor.wrmsr(0x186 + counter, EN | USR | event).unwrap();
    }
    processor.run_with_extra(Mode::User, &|Selected { event, .. }, value| value + u64::from(event));
    let counted: Vec<_> = processor.ledger().entries().map(|entry| (entry.extra, entry.counted)).collect();
    assert_eq!(counted, [(0x1_0001, 0x1_00B8), (0x1_0002, 0x1_00BD), (0, 0xC4)]);
}

#[test]
fn threads_of_nehalem_and_westmere_share_off_core_responses_and_nothing_else() {
    for (signature, registers) in [(NEHALEM, [RSP_0].as_slice()), (WESTMERE, &[RSP_0, RSP_1])] {
        let mut first = processor(signature);
        let mut second = first.other_thread(leaves(signature)).unwrap();
        for register in registers {
            first.wrmsr(*register, 0x101).unwrap();
            assert_eq!(second.rdmsr(*register), Ok(0x101), "{signature:#x}");
            second.wrmsr(*register, 0).unwrap();
            assert_eq!(first.rdmsr(*register), Ok(0));
        }
        first.wrmsr(LATENCY, 30).unwrap();
        first.wrmsr(0x186, EN | USR | 0xC4).unwrap();
        assert_eq!((second.rdmsr(LATENCY), second.rdmsr(0x186)), (Ok(0), Ok(0)));
    }
    let mut first = processor(SANDY_BRIDGE);
    let second = first.other_thread(leaves(SANDY_BRIDGE));
    first.wrmsr(RSP_0, 0x1_0001).unwrap();
    assert_eq!(second.unwrap().rdmsr(RSP_0), Ok(0), "each thread has its own");
    assert!(processor(SKYLAKE).other_thread(leaves(SKYLAKE)).is_none());
}

#[test]
fn each_processor_has_its_registers_and_no_others() {
    let all = [RSP_0, RSP_1, LATENCY, FRONT_END];
    for (signature, present) in [
        (0x0000_06F6, [false; 4]),
        (NEHALEM, [true, false, true, false]),
        (WESTMERE, [true, true, true, false]),
        (SANDY_BRIDGE_EP, [true, true, true, false]),
        (SKYLAKE, [true; 4]),
        (SAPPHIRE_RAPIDS, [true; 4]),
        (TREMONT, [true, true, false, false]),
    ] {
        let mut processor = processor(signature);
        assert_eq!(all.map(|register| processor.rdmsr(register).is_ok()), present, "{signature:#x}");
        assert_eq!(all.map(|register| processor.wrmsr(register, 0).is_ok()), present, "{signature:#x}");
    }
    let mut guest = Leaf { general: 4, ..version(3) }.leaves();
    guest[1].1 = [SKYLAKE, 0, 1 << 31, 0];
    let mut guest = Processor::new(cpuid(guest));
    assert_eq!(all.map(|register| guest.rdmsr(register).is_ok()), [false; 4], "no hypervisor has them");
}

#[test]
fn a_loss_of_power_clears_them() {
    let mut processor = processor(SKYLAKE);
    for register in [RSP_0, RSP_1, LATENCY, FRONT_END] {
        processor.wrmsr(register, 1).unwrap();
    }
    processor.lose_power();
    assert_eq!([RSP_0, RSP_1, LATENCY, FRONT_END].map(|register| processor.rdmsr(register)), [Ok(0); 4]);
}
