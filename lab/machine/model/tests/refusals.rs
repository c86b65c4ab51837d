//! The writes that registers refuse, bit by bit, and other laws that are not in the checklist.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{EN, FULL_WIDTH, INT, Leaf, USR, amd_leaves, amd_v2, cpuid, entries, on_each_unit, run, version};
use model::{Accesses, CounterId, GeneralProtection, Mode, Processor};

/// Returns the bits that a register accepts when they are written one at a time.
fn writable_bits(processor: &mut Processor, register: u32) -> u64 {
    (0..64).map(|bit| 1u64 << bit).filter(|&value| processor.wrmsr(register, value).is_ok()).sum()
}

#[test]
fn amd_select_reserves_19_21_39_to_36_and_63_to_40() {
    on_each_unit(|unit, processor| {
        if unit.amd {
            for i in 0..unit.counters {
                assert_eq!(writable_bits(processor, unit.select(i)), 0x0000_000F_FFD7_FFFF);
            }
        }
    });
}

#[test]
fn intel_select_reserves_63_to_32_pin_control_and_unsupported_any_thread() {
    for (version_number, any_thread_deprecated, any) in
        [(1, false, 0), (2, false, 0), (3, false, 1), (3, true, 0), (5, false, 1), (5, true, 0)]
    {
        let mut processor = Leaf { any_thread_deprecated, ..version(version_number) }.processor();
        assert_eq!(writable_bits(&mut processor, 0x186), 0xFFD7_FFFF | any << 21);
        if version_number >= 2 {
            assert_eq!(writable_bits(&mut processor, 0x38D), 0xBBBB | (any * 0x4444));
        }
    }
}

#[test]
fn intel_non_counter_status_bits_follow_their_features() {
    let counters = 0xF << 32 | 0xFF;
    let [sgx, trace] = [1 << 2, 1 << 25];
    for (version_number, features, others) in [
        (2, 0, 1 << 63),
        (3, 0, 1 << 61 | 1 << 63),
        (3, trace, 1 << 55 | 1 << 61 | 1 << 63),
        (4, 0, 1 << 58 | 1 << 59 | 1 << 61 | 1 << 63),
        (5, sgx | trace, 1 << 55 | 0b1111 << 58 | 1 << 63),
    ] {
        let mut leaves = version(version_number).leaves();
        leaves.push((7, [0, features, 0, 0]));
        let mut processor = Processor::new(cpuid(leaves));
        assert_eq!(writable_bits(&mut processor, 0x390), counters | others);
        if version_number >= 4 {
            assert_eq!(writable_bits(&mut processor, 0x391), counters | others & !(1 << 63));
        }
        assert_eq!(writable_bits(&mut processor, 0x38F), counters);
    }
}

#[test]
fn amd_non_counter_status_bits_require_freezing_support() {
    for (freeze, others) in [(0, 0), (0b100, 0b11 << 58)] {
        let mut processor = Processor::new(cpuid(amd_leaves(1 << 23, [1 | freeze, 6, 0, 0])));
        for register in [0xC000_0302, 0xC000_0303] {
            assert_eq!(writable_bits(&mut processor, register), 0x3F | others);
        }
        assert_eq!(writable_bits(&mut processor, 0xC000_0301), 0x3F);
    }
}

#[test]
fn read_only_registers_refuse_every_write() {
    let mut intel = Leaf { perf_capabilities: Some(FULL_WIDTH), ..version(5) }.processor();
    for register in [0x345, 0x38E, 0x392] {
        assert_eq!(intel.wrmsr(register, 0), Err(GeneralProtection));
    }
    assert_eq!(amd_v2().wrmsr(0xC000_0300, 0), Err(GeneralProtection));
}

#[test]
fn status_set_sets_the_status_and_raises_no_interrupt() {
    for (mut processor, status, set) in [(version(4).processor(), 0x38E, 0x391), (amd_v2(), 0xC000_0300, 0xC000_0303)] {
        processor.wrmsr(set, 0b11).unwrap();
        processor.wrmsr(set, 0b100).unwrap();
        assert_eq!(processor.rdmsr(status), Ok(0b111));
        assert_eq!(processor.rdmsr(set), Ok(0));
        assert!(!processor.interrupt_pending());
        assert_eq!(entries(&processor), []);
    }
}

#[test]
fn frozen_counters_do_not_count() {
    for (mut processor, select, set, clear) in
        [(version(4).processor(), 0x186, 0x391, 0x390), (amd_v2(), 0xC001_0200, 0xC000_0303, 0xC000_0302)]
    {
        processor.wrmsr(select, EN | USR | 0xC0).unwrap();
        processor.wrmsr(set, 1 << 59).unwrap();
        run(&mut processor, 10);
        assert_eq!((processor.rdpmc(0), processor.enabled_counters()), (Ok(0), vec![]));
        processor.wrmsr(clear, 1 << 59).unwrap();
        run(&mut processor, 10);
        assert_eq!(processor.rdpmc(0), Ok(10));
    }
}

#[test]
fn amd_freezes_counters_on_an_interrupt_until_the_status_is_cleared() {
    for (asked, interrupt, frozen) in [(0, INT, false), (1 << 12, 0, false), (1 << 12, INT, true)] {
        let mut processor = amd_v2();
        processor.wrmsr(0x1D9, asked).unwrap();
        processor.wrmsr(0xC001_0201, 0xFFFF_FFFF_FFFF).unwrap();
        processor.wrmsr(0xC001_0200, EN | USR | interrupt | 0xC0).unwrap();
        run(&mut processor, 1);
        assert_eq!(processor.rdmsr(0xC000_0300).unwrap() >> 59, u64::from(frozen));
        run(&mut processor, 5);
        assert_eq!(processor.rdpmc(0), Ok(if frozen { 0 } else { 5 }));
        processor.wrmsr(0xC000_0302, 1 << 59 | 1).unwrap();
        run(&mut processor, 7);
        assert_eq!(processor.rdpmc(0), Ok(if frozen { 7 } else { 12 }));
    }
    assert_eq!(writable_bits(&mut amd_v2(), 0x1D9), 0x183F);
    let mut processor = Processor::new(cpuid(amd_leaves(1 << 23, [1, 6, 0, 0])));
    assert_eq!(processor.rdmsr(0x1D9), Err(GeneralProtection), "where nothing can be frozen");
    assert_eq!(processor.wrmsr(0x1D9, 0), Err(GeneralProtection));
}

#[test]
fn in_use_reports_the_programmed_counters() {
    let mut processor = version(4).processor();
    for (select, fixed_control, in_use) in [
        (0, 0, 0),
        (0xC0, 0, 1),
        (EN | USR, 0, 0), // event 0: not in use
        (INT | 0xC0, 0, 1 << 63 | 1),
        (0, 0b0001, 1 << 32),
        (0, 0b0010 << 8, 1 << 34),
        (0, 0b1000 << 4, 1 << 63),
    ] {
        processor.wrmsr(0x186, select).unwrap();
        processor.wrmsr(0x38D, fixed_control).unwrap();
        assert_eq!(processor.rdmsr(0x392), Ok(in_use));
    }
}

#[test]
fn only_x2apic_mode_has_an_msr_for_the_lvt_entry() {
    let mut xapic = amd_v2();
    assert_eq!(xapic.rdmsr(0x1B), Ok(0xFEE0_0900));
    assert_eq!(xapic.rdmsr(0x834), Err(GeneralProtection));
    assert_eq!(xapic.wrmsr(0x834, 0xFE), Err(GeneralProtection));

    let mut processor = version(5).processor().with_x2apic();
    assert_eq!(processor.rdmsr(0x1B), Ok(0xFEE0_0D00));
    assert_eq!(processor.rdmsr(0x834), Ok(0xFE));
    assert_eq!(writable_bits(&mut processor, 0x834), 0x0001_17FF);
    processor.wrmsr(0x834, 0x1_04FE).unwrap();
    assert_eq!(processor.lvt(), 0x1_04FE);
    processor.set_lvt(u32::MAX);
    assert_eq!(processor.rdmsr(0x834), Ok(0x1_07FF), "delivery status and reserved bits stay clear");
}

#[test]
fn apic_mode_changes_only_by_legal_transitions() {
    let [off, x, x2]: [u64; 3] = [0xFEE0_0000, 0xFEE0_0800, 0xFEE0_0C00];
    let mut leaves = version(5).leaves();
    leaves[1].1[2] |= 1 << 21;
    let make = || Processor::new(cpuid(leaves.clone()));
    let ways: [&[(u64, bool)]; 4] = [
        &[(x, true), (x2, true), (x, false), (off, true), (x2, false), (x, true)],
        &[(0xFEE0_0400, false)],
        &[(x | 1, false), (x | 1 << 9, false), (x | 1 << 36, false), (x | 1 << 35, true)],
        &[(x2, true), (x2 | 1 << 8, true)],
    ];
    for way in ways {
        let mut processor = make();
        for &(value, legal) in way {
            assert_eq!(processor.wrmsr(0x1B, value).is_ok(), legal, "{value:x}");
            assert_ne!(processor.rdmsr(0x1B).unwrap() & 1 << 8, 0, "the bootstrap processor remains that");
        }
    }
    // Without x2APIC support, EXTD is reserved.
    assert_eq!(version(5).processor().wrmsr(0x1B, x2), Err(GeneralProtection));
    // MAXPHYADDR determines the reserved bits.
    let mut wide = leaves.clone();
    wide.extend([(0x8000_0000, [0x8000_0008, 0, 0, 0]), (0x8000_0008, [0x302E, 0, 0, 0])]);
    let mut processor = Processor::new(cpuid(wide));
    assert_eq!([45, 46].map(|bit| processor.wrmsr(0x1B, x | 1 << bit).is_ok()), [true, false]);
    // A disabled APIC delivers no interrupt.
    let mut disabled = make();
    disabled.wrmsr(0xC1, 0xFFFF_FFFF).unwrap();
    disabled.wrmsr(0x186, EN | USR | INT | 0xC0).unwrap();
    disabled.wrmsr(0x1B, off).unwrap();
    run(&mut disabled, 1);
    assert!(disabled.interrupt_pending() && !disabled.take_interrupt());
    disabled.wrmsr(0x1B, x).unwrap();
    assert!(disabled.take_interrupt());
}

#[test]
fn interrupt_stays_pending_after_its_cause_is_cleared() {
    on_each_unit(|unit, processor| {
        unit.load_negative(processor, 0, 1);
        unit.set_select(processor, 0, EN | USR | INT | 0xC0);
        run(processor, 1);
        unit.set_select(processor, 0, 0);
        if let Some(global) = unit.global {
            processor.wrmsr(global.control, 0).unwrap();
            processor.wrmsr(global.clear, 1).unwrap();
        }
        assert!(processor.take_interrupt());
    });
}

#[test]
fn overflows_merge_into_the_pending_interrupt() {
    on_each_unit(|unit, processor| {
        for i in [0, 1] {
            unit.load_negative(processor, i, 1);
            unit.set_select(processor, i, EN | USR | INT | 0xC0);
        }
        run(processor, 1);
        unit.load_negative(processor, 0, 1);
        run(processor, 1);
        let counts: Vec<_> = entries(processor).iter().map(|entry| (entry.overflows, entry.interrupts)).collect();
        assert_eq!(counts, [(2, 1), (1, 0)]);
        assert!(processor.take_interrupt());
        assert!(!processor.interrupt_pending());
        if let Some(global) = unit.global {
            processor.wrmsr(global.clear, 0b11).unwrap();
        }
        unit.load_negative(processor, 1, 1);
        run(processor, 1);
        assert_eq!(entries(processor)[1].interrupts, 1, "after it was taken, the next raises again");
    });
}

#[test]
fn ledger_separates_the_configurations_of_a_counter() {
    on_each_unit(|unit, processor| {
        for (select, mode, count) in [
            (EN | USR | 0xC0, Mode::User, 1),
            (EN | USR | 0xC0, Mode::Kernel, 20),
            (EN | USR | 1 << 17 | 0xC0, Mode::Kernel, 300),
            (EN | USR | 0x1_C2, Mode::User, 4000),
            (EN | USR | 0xC0, Mode::User, 50000),
        ] {
            unit.set_select(processor, 0, select);
            processor.run(mode, &|_| count);
        }
        let mut counted: Vec<_> =
            entries(processor).iter().map(|entry| (entry.selected.event, entry.kernel, entry.counted)).collect();
        counted.sort_unstable();
        assert_eq!(counted, [(0xC0, false, 50001), (0xC0, true, 300), (0xC2, false, 4000)]);
        processor.clear_ledger();
        assert_eq!(entries(processor), []);
        assert_eq!(unit.read(processor, 0), 54301, "the counter stays");
    });
}

#[test]
fn one_run_can_overflow_more_than_once() {
    let mut processor = Leaf { width: 8, ..version(2) }.processor();
    processor.wrmsr(0x186, EN | USR | INT | 0xC0).unwrap();
    run(&mut processor, 1000);
    let entry = entries(&processor)[0];
    assert_eq!((entry.counted, entry.overflows, entry.interrupts), (1000, 3, 1));
    assert_eq!(processor.rdmsr(0xC1), Ok(1000 % 256));
    assert_eq!(processor.until_overflow(CounterId::General(0)), Some(24));
}

#[test]
fn sixty_four_bit_counter_wraps() {
    let leaf = Leaf { width: 64, perf_capabilities: Some(FULL_WIDTH), ..version(2) };
    let mut processor = leaf.processor();
    processor.wrmsr(0x186, EN | USR | 0xC0).unwrap();
    processor.wrmsr(0x4C1, u64::MAX).unwrap();
    assert_eq!(processor.until_overflow(CounterId::General(0)), Some(1));
    run(&mut processor, u64::MAX);
    assert_eq!((processor.rdpmc(0), entries(&processor)[0].overflows), (Ok(u64::MAX - 1), 1));
}

#[test]
fn accesses_are_counted_with_their_faults() {
    let mut processor = version(2).processor();
    let _ = (processor.rdmsr(0x186), processor.rdmsr(0x10), processor.wrmsr(0xC1, 0), processor.wrmsr(0x38E, 0));
    let _ = (processor.rdpmc(0), processor.rdpmc(99), processor.rdpmc(1));
    processor.set_lvt(0xFE);
    assert_eq!(processor.accesses(), Accesses { rdmsr: 2, wrmsr: 2, rdpmc: 3, faulted: 3 });
}

#[test]
fn accesses_by_other_software_are_not_counted() {
    let mut processor = amd_v2();
    let read = processor.uncounted(|processor| {
        processor.wrmsr(0xC001_0201, 7).unwrap();
        processor.rdmsr(0x10).unwrap_err();
        processor.rdpmc(0)
    });
    assert_eq!((read, processor.accesses()), (Ok(7), Accesses::default()));
}

#[test]
fn losing_power_resets_registers_and_interrupt_but_keeps_ledger_and_apic() {
    on_each_unit(|unit, processor| {
        let reset = unit.global.map(|global| processor.rdmsr(global.control));
        unit.set_select(processor, 0, EN | USR | INT | 0xC0);
        unit.load_negative(processor, 0, 3);
        if let Some(global) = unit.global {
            processor.wrmsr(global.control, 1).unwrap();
        }
        run(processor, 5);
        processor.set_lvt(0x1_0400);
        let before = (entries(processor), processor.accesses());
        processor.lose_power();
        assert_eq!((entries(processor), processor.accesses()), before);
        assert!(processor.enabled_counters().is_empty() && !processor.interrupt_pending());
        assert_eq!((unit.read(processor, 0), processor.lvt()), (0, 0xFE));
        assert_eq!(unit.global.map(|global| processor.rdmsr(global.control)), reset);
        assert!(!processor.is_x2apic());
    });
    let leaf = Leaf { perf_capabilities: Some(FULL_WIDTH), ..version(5) };
    let mut processor = leaf.processor().with_x2apic();
    processor.lose_power();
    assert!(processor.is_x2apic());
    assert_eq!((processor.rdmsr(0x345), processor.rdmsr(0x4C1)), (Ok(FULL_WIDTH), Ok(0)), "what it is made with stays");
}

#[test]
fn processor_can_be_sent_to_another_thread() {
    let mut processor = amd_v2();
    let read = std::thread::spawn(move || processor.rdmsr(0xC000_0301)).join().unwrap();
    assert_eq!(read, Ok(0x3F));
    assert_eq!(GeneralProtection.to_string(), "#GP(0)");
    assert_eq!(amd_v2().cpuid(0x8000_0022, 0), [0b101, 6, 0, 0]);
}
