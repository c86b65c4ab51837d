//! AMD's events with large increments: one counter adds at most 15 in a cycle, and two merged ones add all (PPR for
//! family 17h, "Large Increment per Cycle Events").

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{EN, INT, OS, USR, amd_leaves, cpuid};
use model::{Mode, Processor, Selected};

/// `PerfEvtSel` and `PerfCtr` of the extension.
const SELECT: u32 = 0xC001_0200;
const COUNTER: u32 = 0xC001_0201;
const GLOBAL_STATUS: u32 = 0xC000_0300;
const GLOBAL_CTL: u32 = 0xC000_0301;
const FLOPS: u64 = EN | INT | USR | OS | 0x0F03;
const MERGE: u64 = EN | 0xF_0000_00FF;
const COUNTS: u64 = (1 << 48) - 1;

/// A processor of a family with the extension, with or without `PerfMonV2`.
fn processor(signature: u32, version_2: bool) -> Processor {
    let mut leaves = amd_leaves(1 << 23, if version_2 { [1, 6, 0, 0] } else { [0; 4] });
    for (leaf, registers) in &mut leaves {
        if *leaf == 0x8000_0001 {
            registers[0] = signature;
        }
    }
    Processor::new(cpuid(leaves))
}

const ZEN: u32 = 0x0080_0F11;
const ZEN4: u32 = 0x00A6_0F12;
const BULLDOZER: u32 = 0x0060_0F12;

/// Ten cycles with 32 operations each.
fn work(selected: Selected) -> u64 {
    match selected.event {
        0x003 => 320,
        0x076 => 10,
        _ => 0,
    }
}

/// Returns what counter `number` counts in ten cycles with 32 operations each, while `merge` is in the next one.
fn counted(signature: u32, number: u32, merge: u64) -> u64 {
    let mut processor = processor(signature, false);
    processor.wrmsr(SELECT + 2 * number, FLOPS).unwrap();
    if number < 5 {
        processor.wrmsr(SELECT + 2 * number + 2, merge).unwrap();
    }
    processor.run(Mode::User, &work);
    processor.rdpmc(number).unwrap()
}

#[test]
fn one_counter_misses_what_exceeds_15_in_a_cycle() {
    for number in 0..6 {
        assert_eq!(counted(ZEN, number, 0), 150, "counter {number}");
    }
    assert_eq!(counted(BULLDOZER, 3, 0), 320, "no such event");
}

#[test]
fn an_even_counter_counts_all_while_the_next_one_is_merged_into_it() {
    for number in [0, 2, 4] {
        assert_eq!(counted(ZEN, number, MERGE), 320, "counter {number}");
        assert_eq!(counted(ZEN, number, MERGE & !EN), 150, "not enabled");
    }
    for number in [1, 3] {
        assert_eq!(counted(ZEN, number, MERGE), 150, "counter {number} is odd");
    }
}

#[test]
fn the_pair_overflows_when_both_have_wrapped() {
    for (upper, overflows) in [(0xFFFF, true), (0xFFFE, false), (0, false)] {
        for version_2 in [false, true] {
            let mut processor = processor(ZEN4, version_2);
            processor.wrmsr(SELECT + 2, MERGE).unwrap();
            processor.wrmsr(COUNTER, COUNTS - 99).unwrap();
            processor.wrmsr(COUNTER + 2, upper).unwrap();
            processor.wrmsr(SELECT, FLOPS).unwrap();
            processor.run(Mode::User, &work);
            assert_eq!(processor.interrupt_pending(), overflows, "{upper:#x}");
            assert_eq!((processor.rdpmc(0), processor.rdpmc(1)), (Ok(220), Ok((upper + 1) & 0xFFFF)));
            if version_2 {
                assert_eq!(processor.rdmsr(GLOBAL_STATUS), Ok(u64::from(overflows)));
            }
        }
    }
}

#[test]
fn the_control_register_must_enable_both() {
    for (control, count) in [(0b11, 320), (0b01, 0), (0b10, 0)] {
        let mut processor = processor(ZEN4, true);
        processor.wrmsr(GLOBAL_CTL, control).unwrap();
        processor.wrmsr(SELECT + 2, MERGE).unwrap();
        processor.wrmsr(SELECT, FLOPS).unwrap();
        processor.run(Mode::User, &work);
        assert_eq!(processor.rdpmc(0), Ok(count), "{control:#b}");
    }
}
