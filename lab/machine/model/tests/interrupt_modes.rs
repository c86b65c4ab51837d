//! Interrupts at a masked LVT entry, in each mode.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{self, EN, INT, OS, UNITS, USR, entries, version};
use model::{InterruptMode, Mode, Processor};

const OPEN: u32 = 0xFE;
const MASKED: u32 = 0x1_00FE;

/// Returns a processor of each kind. The next event makes its first counter interrupt.
fn armed(mode: InterruptMode) -> impl Iterator<Item = (&'static common::Unit, Processor)> {
    UNITS.iter().map(move |unit| {
        let mut processor = (unit.make)();
        processor.set_interrupt_mode(mode);
        arm(unit, &mut processor);
        (unit, processor)
    })
}

fn arm(unit: &common::Unit, processor: &mut Processor) {
    unit.set_select(processor, 0, EN | INT | USR | OS | 0xC0);
    unit.load_negative(processor, 0, 1);
}

#[test]
fn an_interrupt_at_a_masked_entry_stays_pending_or_is_lost() {
    for mode in InterruptMode::ALL {
        for (_, mut processor) in armed(mode) {
            processor.set_lvt(MASKED);
            processor.run(Mode::User, &|_| 1);
            let is_lost = mode == InterruptMode::LostWhileMasked;
            assert_eq!(processor.interrupt_pending(), !is_lost, "{mode:?}");
            let raised: u64 = entries(&processor).iter().map(|entry| entry.interrupts).sum();
            assert_eq!(raised, u64::from(!is_lost), "{mode:?}");
            processor.set_lvt(OPEN);
            assert_eq!(processor.take_interrupt(), !is_lost, "{mode:?}");
        }
    }
}

#[test]
fn unmasking_raises_an_interrupt_for_a_set_status_in_one_mode_only() {
    for mode in InterruptMode::ALL {
        for (unit, mut processor) in armed(mode) {
            processor.run(Mode::User, &|_| 1);
            assert!(processor.take_interrupt());
            let raises = mode == InterruptMode::RaisedOnUnmask && unit.global.is_some();
            let unmask = |processor: &mut Processor| {
                processor.set_lvt(MASKED);
                processor.set_lvt(OPEN);
                processor.take_interrupt()
            };
            assert_eq!(unmask(&mut processor), raises, "{mode:?}");
            // The same holds while no counter counts.
            if let Some(global) = unit.global {
                processor.wrmsr(global.control, 0).unwrap();
            }
            assert_eq!(unmask(&mut processor), raises, "{mode:?}");
            if unit.amd {
                processor.set_lvt(OPEN);
                assert!(!processor.interrupt_pending(), "{mode:?}: an entry that is open is not unmasked");
            }
            unit.set_select(&mut processor, 0, EN | USR | OS | 0xC0);
            assert!(!unmask(&mut processor), "{mode:?}: the counter does not interrupt");
            unit.set_select(&mut processor, 0, EN | INT | USR | OS | 0xC0);
            if let Some(global) = unit.global {
                processor.wrmsr(global.clear, 1).unwrap();
            }
            assert!(!unmask(&mut processor), "{mode:?}: the status is clear");
        }
    }
}

#[test]
fn a_set_status_bit_suppresses_interrupts_of_its_counter_on_intel() {
    for (unit, mut processor) in armed(InterruptMode::Edge) {
        processor.run(Mode::User, &|_| 1);
        assert!(processor.take_interrupt());
        processor.set_lvt(OPEN);
        unit.load_negative(&mut processor, 0, 1);
        let is_stuck = unit.global.is_some() && !unit.amd;
        assert_eq!(processor.interrupting_counters().is_empty(), is_stuck);
        processor.run(Mode::User, &|_| 1);
        assert_eq!(processor.take_interrupt(), !is_stuck);
        processor.set_lvt(OPEN);
        // Another counter still interrupts.
        unit.set_select(&mut processor, 1, EN | INT | USR | OS | 0xC0);
        unit.load_negative(&mut processor, 1, 1);
        processor.run(Mode::User, &|_| 1);
        assert!(processor.take_interrupt());
        processor.set_lvt(OPEN);
        if let Some(global) = unit.global {
            processor.wrmsr(global.clear, 0b11).unwrap();
        }
        unit.load_negative(&mut processor, 0, 1);
        processor.run(Mode::User, &|_| 1);
        assert!(processor.take_interrupt(), "the status was cleared");
    }
}

#[test]
fn a_fixed_counter_has_a_status_bit_like_general_counters() {
    const FIXED_CTR0: u32 = 0x309;
    const FIXED_CTR_CTRL: u32 = 0x38D;
    const GLOBAL_CTRL: u32 = 0x38F;
    for (mode, raises) in [(InterruptMode::Edge, false), (InterruptMode::RaisedOnUnmask, true)] {
        let mut processor = version(4).processor();
        processor.set_interrupt_mode(mode);
        processor.wrmsr(FIXED_CTR0, (1 << 48) - 1).unwrap();
        processor.wrmsr(FIXED_CTR_CTRL, 0xB).unwrap();
        processor.wrmsr(GLOBAL_CTRL, 1 << 32).unwrap();
        processor.run(Mode::User, &|_| 1);
        assert!(processor.take_interrupt(), "{mode:?}");
        processor.set_lvt(OPEN);
        assert_eq!(processor.take_interrupt(), raises, "{mode:?}");
        processor.wrmsr(FIXED_CTR0, (1 << 48) - 1).unwrap();
        processor.run(Mode::User, &|_| 1);
        assert!(!processor.interrupt_pending(), "{mode:?}: stuck");
        processor.wrmsr(FIXED_CTR_CTRL, 0x3).unwrap();
        processor.set_lvt(MASKED);
        processor.set_lvt(OPEN);
        assert!(!processor.interrupt_pending(), "{mode:?}: it does not interrupt");
    }
}

#[test]
fn netburst_raises_an_interrupt_on_unmask_while_ovf_is_set() {
    const OVF: u64 = 1 << 31;
    // Clocks by MSR_FSB_ESCR0, on counter 0: family 15, model 6, without Hyper-Threading.
    let leaves = vec![(0, [2, 0x756E_6547, 0x6C65_746E, 0x4965_6E69]), (1, [0x0F64, 0, 0, 0])];
    for (mode, raises) in [(InterruptMode::Edge, false), (InterruptMode::RaisedOnUnmask, true)] {
        let mut processor = Processor::new(common::cpuid(leaves.clone()));
        processor.set_interrupt_mode(mode);
        processor.wrmsr(0x3A2, 0x13 << 25 | 1 << 9 | 0xC).unwrap();
        (0..2).for_each(|_| processor.wrmsr(0x300, (1 << 40) - 1).unwrap());
        processor.wrmsr(0x360, 1 << 26 | 3 << 16 | 6 << 13 | 1 << 12).unwrap();
        processor.run(Mode::User, &|_| 1);
        assert!(processor.take_interrupt(), "{mode:?}");
        processor.set_lvt(OPEN);
        assert_eq!(processor.take_interrupt(), raises, "{mode:?}");
        let cccr = processor.rdmsr(0x360).unwrap();
        assert_eq!(cccr & OVF, OVF, "{mode:?}");
        processor.wrmsr(0x360, cccr & !OVF).unwrap();
        processor.set_lvt(MASKED);
        processor.set_lvt(OPEN);
        assert!(!processor.interrupt_pending(), "{mode:?}");
    }
}
