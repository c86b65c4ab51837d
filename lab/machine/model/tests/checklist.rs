//! The laws of a PMU, numbered as in the project's checklist of peer test suites (item n is `mNN_...`). Item 24, the
//! suite on AMD's legacy names, is covered by `UNITS`, which repeats every law that takes a unit.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{
    self, EN, FULL_WIDTH, INT, Leaf, OS, UNITS, USR, amd_core, amd_leaves, amd_legacy, amd_v2, amd_v2_with, cpuid,
    encoding, entries, hygon_leaves, on_each_unit, other_vendor_leaves, run, version,
};
use model::{CounterId, GeneralProtection, Mode, Processor, Selected};

const REFUSED: Result<(), GeneralProtection> = Err(GeneralProtection);

/// Returns the number of readable registers from `first` on, `stride` apart, before the first absent one.
fn readable_registers(processor: &mut Processor, first: u32, stride: u32) -> u32 {
    (0..64).find(|i| processor.rdmsr(first + stride * i).is_err()).unwrap()
}

/// Architectural events by their bits in leaf 0AH, EBX.
const EVENTS: [(u16, u16); 8] =
    [(0x3C, 0), (0xC0, 0), (0x3C, 1), (0x2E, 0x4F), (0x2E, 0x41), (0xC4, 0), (0xC5, 0), (0xA4, 1)];

#[test]
fn m01_intel_registers_follow_leaf_0a() {
    for version_number in 1..=5 {
        for general in 0..=8 {
            for fixed in 0..=4 {
                for capabilities in [None, Some(0), Some(FULL_WIDTH)] {
                    let leaf = Leaf { general, fixed, perf_capabilities: capabilities, ..version(version_number) };
                    let mut processor = leaf.processor();
                    assert_eq!(readable_registers(&mut processor, 0x186, 1), general);
                    assert_eq!(readable_registers(&mut processor, 0xC1, 1), general);
                    let whole = if capabilities == Some(FULL_WIDTH) { general } else { 0 };
                    assert_eq!(readable_registers(&mut processor, 0x4C1, 1), whole);
                    let global = version_number > 1;
                    let fixed = match version_number {
                        1 => 0,
                        2..=4 => fixed.max(3),
                        _ => fixed,
                    };
                    assert_eq!(readable_registers(&mut processor, 0x309, 1), fixed);
                    for register in [0x38D, 0x38E, 0x38F, 0x390] {
                        assert_eq!(processor.rdmsr(register).is_ok(), global);
                    }
                    assert_eq!(processor.rdmsr(0x345).ok(), capabilities);
                }
            }
        }
    }
}

#[test]
fn m01_counters_without_an_address_do_not_exist() {
    let mut processor = Leaf { general: 255, fixed: 31, perf_capabilities: Some(FULL_WIDTH), ..version(5) }.processor();
    for (first, counters) in [(0x186, 10), (0xC1, 10), (0x4C1, 10), (0x309, 16)] {
        assert_eq!(readable_registers(&mut processor, first, 1), counters);
    }
    // Counters of width 0 do not exist either.
    let mut processor = Leaf { width: 0, fixed_width: 0, ..version(5) }.processor();
    for first in [0x186, 0xC1, 0x309] {
        assert_eq!(readable_registers(&mut processor, first, 1), 0);
    }
}

#[test]
fn m01_counter_width_follows_leaf_0a() {
    for width in [32, 40, 48, 64] {
        let leaf = Leaf { width, fixed_width: width, perf_capabilities: Some(FULL_WIDTH), ..version(2) };
        let mut processor = leaf.processor();
        let highest = u64::MAX >> (64 - width);
        for counter in [0x4C1, 0x309] {
            assert_eq!(processor.wrmsr(counter, highest), Ok(()));
            assert_eq!(processor.rdmsr(counter), Ok(highest));
        }
        processor.wrmsr(0x186, EN | USR | 0xC0).unwrap();
        run(&mut processor, 1);
        assert_eq!(processor.rdmsr(0xC1), Ok(0));
    }
}

#[test]
fn m02_version_determines_the_registers_up_to_the_highest_known() {
    // (register, first version that has it)
    let registers = [(0x186, 1), (0xC1, 1), (0x309, 2), (0x38D, 2), (0x38E, 2), (0x38F, 2), (0x390, 2)];
    let later = [(0x391, 4), (0x392, 4)];
    for version_number in [0, 1, 2, 3, 4, 5, 6, 255] {
        for capabilities in [0, FULL_WIDTH] {
            let mut processor = Leaf { perf_capabilities: Some(capabilities), ..version(version_number) }.processor();
            for (register, since) in registers.into_iter().chain(later) {
                assert_eq!(processor.rdmsr(register).is_ok(), version_number >= since, "{version_number} {register:x}");
            }
            let whole = version_number >= 1 && capabilities == FULL_WIDTH;
            assert_eq!(processor.rdmsr(0x4C1).is_ok(), whole);
        }
    }
    // The bitmap of fixed counters is valid from version 5 on.
    for (version_number, exists) in [(4, false), (5, true), (6, true)] {
        let mut processor = Leaf { fixed: 0, fixed_bitmap: 8, ..version(version_number) }.processor();
        assert_eq!(processor.rdmsr(0x30C).is_ok(), exists);
    }
}

#[test]
fn m03_architectural_event_is_available_within_the_length_if_its_bit_is_clear() {
    for events_length in 0..=9 {
        for events_absent in 0..=255 {
            let processor = Leaf { events_length, events_absent, ..version(2) }.processor();
            for (index, event) in (0u8..).zip(EVENTS) {
                let available = u32::from(index) < events_length && events_absent >> index & 1 == 0;
                assert_eq!(processor.architectural_event(index).map(encoding), available.then_some(event));
            }
            assert_eq!(processor.architectural_event(8), None);
        }
    }
    assert_eq!(amd_v2().architectural_event(0), None);
    assert_eq!(version(0).processor().architectural_event(0), None);
}

#[test]
fn m04_unavailable_architectural_encoding_remains_programmable() {
    let mut processor = Leaf { events_absent: 0xFF, ..version(5) }.processor();
    for i in 0..8 {
        for (event, umask) in EVENTS {
            let select = EN | USR | u64::from(umask) << 8 | u64::from(event);
            assert_eq!(processor.wrmsr(0x186 + i, select), Ok(()));
            assert_eq!(processor.rdmsr(0x186 + i), Ok(select));
        }
    }
}

#[test]
fn m05_fixed_counter_exists_if_counted_or_set_in_the_bitmap() {
    for version_number in 1..=5 {
        for fixed in 0..=5 {
            for fixed_bitmap in 0..32 {
                let mut processor = Leaf { fixed, fixed_bitmap, ..version(version_number) }.processor();
                for i in 0..6 {
                    let in_bitmap = version_number >= 5 && fixed_bitmap >> i & 1 == 1;
                    // Versions 2 to 4 have three, whatever they report.
                    let counted = if version_number < 5 { fixed.max(3) } else { fixed };
                    let exists = version_number >= 2 && (i < counted || in_bitmap);
                    assert_eq!(processor.rdmsr(0x309 + i).is_ok(), exists);
                    assert_eq!(processor.rdpmc(1 << 30 | i).is_ok(), exists);
                }
            }
        }
    }
}

#[test]
fn m06_absent_counter_faults() {
    on_each_unit(|unit, processor| {
        // The registers after the last select and after the last counter, unless another set of names uses them.
        let after = if unit.amd && unit.select.1 == 1 { vec![0xC001_0008] } else { vec![unit.select(unit.counters)] };
        for register in after.into_iter().chain((!unit.amd).then(|| unit.counter(unit.counters))) {
            assert_eq!(processor.rdmsr(register), Err(GeneralProtection), "{register:x}");
            assert_eq!(processor.wrmsr(register, 0), REFUSED, "{register:x}");
        }
    });
    let mut processor = version(5).processor();
    assert_eq!(processor.wrmsr(0x309 + 4, 0), REFUSED);
    assert_eq!(processor.rdmsr(0x309 + 4), Err(GeneralProtection));
}

#[test]
fn m07_control_bit_of_an_absent_counter_faults() {
    for bitmap in 0..32u64 {
        let leaf = Leaf { fixed: 0, fixed_bitmap: u32::try_from(bitmap).unwrap(), general: 4, ..version(5) };
        let mut processor = leaf.processor();
        for i in 0..16 {
            let exists = bitmap >> i & 1 == 1;
            for bit in [0, 1, 3] {
                assert_eq!(processor.wrmsr(0x38D, 1 << (4 * i + bit)).is_ok(), exists, "nibble of fixed {i}");
            }
            assert_eq!(processor.wrmsr(0x38F, 1 << (32 + i)).is_ok(), exists, "global bit of fixed {i}");
        }
        for i in 0..32 {
            assert_eq!(processor.wrmsr(0x38F, 1 << i).is_ok(), i < 4, "global bit of general {i}");
        }
    }
    let mut processor = amd_v2();
    for i in 0..64 {
        assert_eq!(processor.wrmsr(0xC000_0301, 1 << i).is_ok(), i < 6);
    }
}

#[test]
fn m08_global_control_resets_to_all_general_counters() {
    for (general, reset) in [(0, 0), (1, 1), (4, 0xF), (8, 0xFF)] {
        assert_eq!(Leaf { general, ..version(2) }.processor().rdmsr(0x38F), Ok(reset));
    }
    for (counters, reset) in [(0, 0), (4, 0xF), (6, 0x3F), (15, 0x7FFF)] {
        assert_eq!(amd_v2_with(counters).rdmsr(0xC000_0301), Ok(reset));
    }
}

#[test]
fn m08_all_other_registers_reset_to_zero() {
    on_each_unit(|unit, processor| {
        for i in 0..unit.counters {
            assert_eq!(processor.rdmsr(unit.select(i)), Ok(0));
            assert_eq!(processor.rdmsr(unit.counter(i)), Ok(0));
        }
        if let Some(global) = unit.global {
            assert_eq!(processor.rdmsr(global.status), Ok(0));
        }
        assert_eq!(processor.enabled_counters(), []);
        assert_eq!(processor.lvt(), 0xFE);
        assert!(!processor.interrupt_pending());
    });
    assert_eq!(version(5).processor().rdmsr(0x38D), Ok(0));
}

#[test]
fn m09_counter_write_sign_extends_bit_31() {
    let table = [
        (0, 0),
        (1, 1),
        (0x7FFF_FFFF, 0x7FFF_FFFF),
        (0x8000_0000, 0xFFFF_FFFF_8000_0000),
        (0xFFFF_FFFF, u64::MAX),
        // The upper half is ignored.
        (0xFFFF_FFFF_0000_0000, 0),
        (0x1234_5678_8000_0001, 0xFFFF_FFFF_8000_0001),
        (0x8000_0000_7FFF_FFFF, 0x7FFF_FFFF),
    ];
    on_each_unit(|unit, processor| {
        if unit.narrow_writes {
            for i in 0..unit.counters {
                for (written, loaded) in table {
                    assert_eq!(processor.wrmsr(unit.counter(i), written), Ok(()));
                    assert_eq!(unit.read(processor, i), loaded & unit.mask());
                }
            }
        }
    });
}

#[test]
fn m10_full_width_alias_is_the_same_counter_and_refuses_bits_above_the_width() {
    let mut processor = Leaf { perf_capabilities: Some(FULL_WIDTH), ..version(3) }.processor();
    for i in 0..8 {
        let (narrow, whole) = (0xC1 + i, 0x4C1 + i);
        for value in [0, 0x8000_0000, 0x7FFF_FFFF_FFFF, 0xFFFF_FFFF_FFFF] {
            assert_eq!(processor.wrmsr(whole, value), Ok(()));
            assert_eq!(processor.rdmsr(whole), Ok(value));
            assert_eq!(processor.rdmsr(narrow), Ok(value));
        }
        processor.wrmsr(narrow, 5).unwrap();
        assert_eq!(processor.rdmsr(whole), Ok(5));
        for above in 48..64 {
            assert_eq!(processor.wrmsr(whole, 1 << above), REFUSED);
        }
        assert_eq!(processor.rdmsr(whole), Ok(5), "a refused write changes nothing");
    }
}

#[test]
fn m10_fixed_counter_refuses_bits_above_its_width() {
    let mut processor = Leaf { fixed_width: 40, ..version(2) }.processor();
    for bit in 0..64 {
        assert_eq!(processor.wrmsr(0x309, 1 << bit).is_ok(), bit < 40);
    }
}

#[test]
fn m11_rdpmc_selects_general_counters_from_0_and_fixed_counters_by_bit_30() {
    on_each_unit(|unit, processor| {
        for i in 0..unit.counters {
            processor.wrmsr(unit.counter(i), u64::from(i) + 100).unwrap();
        }
        for i in 0..unit.counters {
            assert_eq!(processor.rdpmc(i), Ok(u64::from(i) + 100));
        }
        for absent in [15, 16, 64, 1 << 31, 1 << 29, u32::MAX] {
            assert_eq!(processor.rdpmc(absent), Err(GeneralProtection), "{absent:x}");
        }
        assert_eq!(processor.rdpmc(1 << 30).is_ok(), unit.global.is_some() && !unit.amd);
    });
    for (mut processor, counters) in
        [(amd_legacy(), 4), (amd_core(), 6), (amd_v2_with(9), 9), (version(1).processor(), 8)]
    {
        assert_eq!((0..64).find(|&i| processor.rdpmc(i).is_err()), Some(counters));
    }
    let mut processor = version(2).processor();
    for i in 0..4 {
        processor.wrmsr(0x309 + i, u64::from(i) + 7).unwrap();
        assert_eq!(processor.rdpmc(1 << 30 | i), Ok(u64::from(i) + 7));
        assert_eq!(processor.rdpmc(1 << 31 | i), Err(GeneralProtection), "no fast reads");
    }
    assert_eq!(processor.rdpmc(1 << 30 | 4), Err(GeneralProtection));
}

#[test]
fn m12_every_available_event_counts_on_every_general_counter() {
    on_each_unit(|unit, processor| {
        let amd_events = [(0x76, 0), (0xC0, 0), (0xC2, 0), (0xC3, 0)];
        let events = if unit.amd { &amd_events[..] } else { &EVENTS[..] };
        for i in 0..unit.counters {
            for &event in events {
                unit.set_select(processor, i, EN | USR | u64::from(event.1) << 8 | u64::from(event.0));
                processor.wrmsr(unit.counter(i), 0).unwrap();
                processor.run(Mode::User, &|selected| if encoding(selected) == event { 77 } else { 1 });
                assert_eq!(unit.read(processor, i), 77);
                unit.set_select(processor, i, 0);
            }
        }
    });
}

#[test]
fn m12_each_fixed_counter_counts_its_architectural_event() {
    let paired = [(0xC0, 0), (0x3C, 0), (0x3C, 1), (0xA4, 1)];
    let mut processor = version(5).processor();
    processor.wrmsr(0x38F, 0xF << 32).unwrap();
    for (i, event) in (0u8..).zip(paired) {
        processor.wrmsr(0x38D, 0b0011 << (4 * i)).unwrap();
        let enabled = processor.enabled_counters();
        assert_eq!(enabled.len(), 1);
        assert_eq!((enabled[0].0, encoding(enabled[0].1)), (CounterId::Fixed(i), event));
        run(&mut processor, 9);
        assert_eq!(processor.rdmsr(0x309 + u32::from(i)), Ok(9));
    }
    // A fixed counter without an architectural event has the pseudo-encoding of Intel's event lists.
    let mut processor = Leaf { fixed: 5, ..version(5) }.processor();
    processor.wrmsr(0x38F, 1 << 36).unwrap();
    processor.wrmsr(0x38D, 0b0011 << 16).unwrap();
    assert_eq!(encoding(processor.enabled_counters()[0].1), (0, 5));
}

#[test]
fn m12_all_counters_count_simultaneously() {
    on_each_unit(|unit, processor| {
        for i in 0..unit.counters {
            unit.set_select(processor, i, EN | USR | u64::from(i + 1));
        }
        let fixed = if let (false, Some(global)) = (unit.amd, unit.global) {
            processor.wrmsr(0x38D, 0x333).unwrap();
            processor.wrmsr(global.control, unit.all() | 0b111 << 32).unwrap();
            3
        } else {
            0
        };
        processor.run(Mode::User, &|selected| 1000 * u64::from(selected.event) + u64::from(selected.umask));
        for i in 0..unit.counters {
            assert_eq!(unit.read(processor, i), 1000 * u64::from(i + 1));
        }
        for (i, counted) in (0..fixed).zip([0xC0 * 1000, 0x3C * 1000, 0x3C * 1000 + 1]) {
            assert_eq!(processor.rdmsr(0x309 + i), Ok(counted));
        }
        assert_eq!(entries(processor).len(), usize::try_from(unit.counters + fixed).unwrap());
    });
}

#[test]
fn m13_disabled_counter_keeps_its_value() {
    on_each_unit(|unit, processor| {
        for select in [0, USR | OS | 0xC0, USR | OS | INT | 0xC0, EN | 0xC0] {
            for i in 0..unit.counters {
                processor.wrmsr(unit.counter(i), 0x1234_5678).unwrap();
                unit.set_select(processor, i, select);
                run(processor, 1000);
                processor.run(Mode::Kernel, &|_| 1000);
                assert_eq!(unit.read(processor, i), 0x1234_5678);
                assert_eq!(processor.until_overflow(CounterId::General(u8::try_from(i).unwrap())), None);
            }
        }
        assert_eq!(entries(processor), []);
    });
}

#[test]
fn m14_user_and_kernel_bits_filter_modes() {
    on_each_unit(|unit, processor| {
        for i in 0..unit.counters {
            for (modes, counted) in [(0, 0), (USR, 3), (OS, 50), (USR | OS, 53)] {
                processor.wrmsr(unit.counter(i), 0).unwrap();
                unit.set_select(processor, i, EN | modes | 0xC0);
                processor.run(Mode::User, &|_| 3);
                processor.run(Mode::Kernel, &|_| 50);
                assert_eq!(unit.read(processor, i), counted);
            }
            unit.set_select(processor, i, 0);
        }
    });
}

#[test]
fn m14_fixed_counter_nibble_is_os_usr_any_pmi() {
    for (nibble, counted, interrupts) in
        [(0b0000, 0, 0), (0b0001, 50, 0), (0b0010, 3, 0), (0b0011, 53, 0), (0b1000, 0, 0), (0b1011, 53, 1)]
    {
        let mut processor = version(2).processor();
        processor.wrmsr(0x38F, 0xF << 32).unwrap();
        for i in 0..4 {
            let start = (1 << 48) - 3;
            processor.wrmsr(0x309 + i, start).unwrap();
            processor.wrmsr(0x38D, nibble << (4 * i)).unwrap();
            processor.clear_ledger();
            processor.run(Mode::User, &|_| 3);
            processor.run(Mode::Kernel, &|_| 50);
            assert_eq!(processor.rdmsr(0x309 + i), Ok((start + counted) & ((1 << 48) - 1)));
            assert_eq!(entries(&processor).iter().map(|entry| entry.interrupts).sum::<u64>(), interrupts);
            assert_eq!(processor.interrupt_pending(), interrupts == 1);
            processor.take_interrupt();
            processor.set_lvt(0xFE);
        }
    }
}

#[test]
fn m15_counter_mask_lowers_the_count() {
    // The number of events in each of eight cycles.
    let cycles = [0u64, 3, 1, 0, 4, 2, 2, 0];
    let events = |selected: Selected| {
        let passes = |&&n: &&u64| (n >= u64::from(selected.cmask)) != selected.invert;
        if selected.cmask == 0 { cycles.iter().sum() } else { cycles.iter().filter(passes).count() as u64 }
    };
    on_each_unit(|unit, processor| {
        for (cmask, invert, counted) in [(0, 0, 12), (1, 0, 5), (2, 0, 4), (3, 0, 2), (200, 0, 0), (1, 1, 3)] {
            processor.wrmsr(unit.counter(0), 0).unwrap();
            unit.set_select(processor, 0, EN | USR | cmask << 24 | invert << 23 | 0xC0);
            processor.run(Mode::User, &events);
            assert_eq!(unit.read(processor, 0), counted, "cmask {cmask} invert {invert}");
        }
        unit.set_select(processor, 0, EN | USR | 1 << 18 | 0xC0);
        assert!(processor.enabled_counters()[0].1.edge);
    });
}

#[test]
fn m16_counter_loaded_with_one_minus_the_count_ends_at_one() {
    on_each_unit(|unit, processor| {
        for i in 0..unit.counters {
            for count in [2, 1000, 0x7FFF_FFFF] {
                unit.load_negative(processor, i, count - 1);
                unit.set_select(processor, i, EN | USR | 0xC0);
                let id = CounterId::General(u8::try_from(i).unwrap());
                assert_eq!(processor.until_overflow(id), Some(u64::from(count) - 1));
                run(processor, u64::from(count));
                assert_eq!(unit.read(processor, i), 1);
                unit.set_select(processor, i, 0);
            }
        }
        assert!(entries(processor).iter().all(|entry| entry.overflows == 3));
    });
}

#[test]
fn m17_overflow_sets_the_status_bit_and_a_write_clears_it() {
    on_each_unit(|unit, processor| {
        let Some(global) = unit.global else { return };
        for i in 0..unit.counters {
            unit.load_negative(processor, i, 2);
            unit.set_select(processor, i, EN | USR | 0xC0);
            run(processor, 1);
            assert_eq!(processor.rdmsr(global.status), Ok(0), "not yet");
            run(processor, 1);
            assert_eq!(processor.rdmsr(global.status), Ok(1 << i));
            run(processor, 1);
            assert_eq!(processor.rdmsr(global.status), Ok(1 << i), "it stays");
            processor.wrmsr(global.clear, unit.all() & !(1 << i)).unwrap();
            assert_eq!(processor.rdmsr(global.status), Ok(1 << i), "others are cleared");
            assert_eq!(processor.wrmsr(global.status, 0), REFUSED, "read-only");
            processor.wrmsr(global.clear, 1 << i).unwrap();
            assert_eq!(processor.rdmsr(global.status), Ok(0));
            unit.set_select(processor, i, 0);
        }
    });
    let mut processor = version(5).processor();
    processor.wrmsr(0x38F, 0xF << 32).unwrap();
    processor.wrmsr(0x38D, 0x3333).unwrap();
    for i in 0..4 {
        processor.wrmsr(0x309 + i, (1 << 48) - 1).unwrap();
        run(&mut processor, 1);
        assert_eq!(processor.rdmsr(0x38E), Ok(1 << (32 + i)));
        processor.wrmsr(0x390, 1 << (32 + i)).unwrap();
        assert_eq!(processor.rdmsr(0x38E), Ok(0));
    }
}

#[test]
fn m18_overflow_interrupts_only_if_the_int_bit_is_set() {
    on_each_unit(|unit, processor| {
        for i in 0..unit.counters {
            let interrupts = i % 2 == 0;
            unit.load_negative(processor, i, 1);
            unit.set_select(processor, i, EN | USR | if interrupts { INT } else { 0 } | 0xC0);
            run(processor, 1);
            assert_eq!(processor.interrupt_pending(), interrupts);
            assert_eq!(processor.take_interrupt(), interrupts);
            processor.set_lvt(0xFE);
            unit.set_select(processor, i, 0);
        }
        for entry in entries(processor) {
            let CounterId::General(number) = entry.counter else { panic!("not a general counter") };
            assert_eq!((entry.overflows, entry.interrupts), (1, u64::from(number % 2 == 0)));
        }
    });
}

#[test]
fn m19_intel_masks_the_entry_on_delivery_and_the_handler_unmasks_it() {
    const MASK: u32 = 1 << 16;
    let acknowledge = |unit: &common::Unit, processor: &mut Processor| {
        if let Some(global) = unit.global {
            processor.wrmsr(global.clear, 1).unwrap();
        }
    };
    on_each_unit(|unit, processor| {
        unit.set_select(processor, 0, EN | USR | INT | 0xC0);
        unit.load_negative(processor, 0, 1);
        run(processor, 1);
        assert!(processor.take_interrupt());
        assert!(!processor.interrupt_pending());
        acknowledge(unit, processor);
        assert!(!processor.take_interrupt(), "taken once");
        assert_eq!(processor.lvt(), if unit.amd { 0xFE } else { 0xFE | MASK });

        // On Intel, the second interrupt stays pending until the handler unmasks the entry.
        unit.load_negative(processor, 0, 1);
        run(processor, 1);
        assert!(processor.interrupt_pending());
        assert_eq!(processor.interrupt_due(), unit.amd);
        assert_eq!(processor.take_interrupt(), unit.amd);
        if !unit.amd {
            processor.set_lvt(processor.lvt() & !MASK);
            assert!(processor.take_interrupt());
        }
        acknowledge(unit, processor);

        // A masked entry blocks interrupts on both vendors.
        processor.set_lvt(0xFE | MASK);
        unit.load_negative(processor, 0, 1);
        run(processor, 1);
        assert!(!processor.take_interrupt());
        processor.set_lvt(0xFE);
        assert!(processor.take_interrupt());
    });
}

#[test]
fn m20_write_to_a_running_counter_takes_effect() {
    on_each_unit(|unit, processor| {
        unit.set_select(processor, 0, EN | USR | INT | 0xC0);
        run(processor, 500);
        processor.wrmsr(unit.counter(0), 0).unwrap();
        run(processor, 30);
        assert_eq!(unit.read(processor, 0), 30, "zero restarts");
        unit.load_negative(processor, 0, 1);
        run(processor, 1);
        assert_eq!(unit.read(processor, 0), 0);
        assert!(processor.interrupt_pending(), "minus one overflows");
        let entry = entries(processor)[0];
        assert_eq!((entry.counted, entry.overflows), (531, 1), "the ledger does not see writes");
    });
}

#[test]
fn m21_global_control_enables_exactly_the_selected_counters() {
    on_each_unit(|unit, processor| {
        let Some(global) = unit.global else { return };
        for i in 0..unit.counters {
            unit.set_select(processor, i, EN | USR | 0xC0);
        }
        for allowed in [unit.all(), 0, 1, unit.all() - 1, 0b10] {
            for i in 0..unit.counters {
                processor.wrmsr(unit.counter(i), 0).unwrap();
            }
            processor.wrmsr(global.control, 0).unwrap();
            run(processor, 1111);
            processor.wrmsr(global.control, allowed).unwrap();
            run(processor, 41);
            run(processor, 1);
            processor.wrmsr(global.control, 0).unwrap();
            run(processor, 2222);
            for i in 0..unit.counters {
                assert_eq!(unit.read(processor, i), if allowed >> i & 1 == 1 { 42 } else { 0 });
            }
        }
    });
}

#[test]
fn m22_transaction_bits_are_reserved_without_tsx() {
    let mut processor = version(5).processor();
    for i in 0..8 {
        assert_eq!(processor.wrmsr(0x186 + i, 1 << 32), REFUSED);
        assert_eq!(processor.wrmsr(0x186 + i, 1 << 33), REFUSED);
    }
}

#[test]
fn m23_amd_registers_follow_the_extended_leaves() {
    // (extended features ECX, leaf 80000022H, counters, has global registers)
    let table = [
        (0, [0; 4], 4, false),
        (1 << 23, [0; 4], 6, false),
        (1 << 23, [0, 6, 0, 0], 6, false), // the number is valid only with PerfMonV2
        (1 << 23, [1, 6, 0, 0], 6, true),
        (1 << 23, [1, 8, 0, 0], 8, true),
        (1 << 23, [1, 0x0FFF_FFF4, 0, 0], 4, true), // bits 3:0 only
    ];
    for (features, leaf_22, counters, global) in table {
        let mut processor = Processor::new(cpuid(amd_leaves(features, leaf_22)));
        assert_eq!((0..64).find(|&i| processor.rdpmc(i).is_err()), Some(counters));
        assert_eq!(readable_registers(&mut processor, 0xC001_0000, 1), 8, "four selects, then four counters");
        let extended = features != 0;
        assert_eq!(readable_registers(&mut processor, 0xC001_0200, 1), if extended { 2 * counters } else { 0 });
        for register in 0xC000_0300..=0xC000_0303 {
            assert_eq!(processor.rdmsr(register).is_ok(), global);
        }
        for register in [0x186, 0xC1, 0x38F, 0x309] {
            assert_eq!(processor.rdmsr(register), Err(GeneralProtection));
        }
        processor.wrmsr(0xC001_0004, u64::MAX).unwrap();
        assert_eq!(processor.rdmsr(0xC001_0004), Ok((1 << 48) - 1), "48 bits");
    }
    let mut hygon = Processor::new(cpuid(hygon_leaves()));
    assert_eq!(readable_registers(&mut hygon, 0xC001_0200, 1), 12);
    // A leaf above the highest reported leaf is ignored.
    let mut leaves = amd_leaves(1 << 23, [1, 6, 0, 0]);
    leaves[1].1[0] = 0x8000_0021;
    assert_eq!(Processor::new(cpuid(leaves.clone())).rdmsr(0xC000_0301), Err(GeneralProtection));
    leaves[1].1[0] = 0;
    assert_eq!(Processor::new(cpuid(leaves)).rdmsr(0xC001_0200), Err(GeneralProtection));
}

#[test]
fn m24_legacy_registers_alias_the_first_four_extended_ones() {
    assert_eq!(UNITS.iter().filter(|unit| unit.amd && unit.select.1 == 1).count(), 3, "the suite runs on them");
    for mut processor in [amd_core(), amd_v2()] {
        for i in 0..4 {
            for (legacy, extended, value) in [
                (0xC001_0000 + i, 0xC001_0200 + 2 * i, EN | USR | 0xC0),
                (0xC001_0004 + i, 0xC001_0201 + 2 * i, 0xFFFF_1234_5678),
            ] {
                processor.wrmsr(legacy, value).unwrap();
                assert_eq!(processor.rdmsr(extended), Ok(value));
                processor.wrmsr(extended, value ^ 1).unwrap();
                assert_eq!(processor.rdmsr(legacy), Ok(value ^ 1));
            }
        }
    }
}

#[test]
fn m25_overflow_shows_only_in_the_top_bit_before_perfmon_v2() {
    for (mut processor, counter) in [(amd_legacy(), 0xC001_0004), (amd_core(), 0xC001_0201)] {
        for register in 0xC000_0300..=0xC000_0303 {
            assert_eq!(processor.rdmsr(register), Err(GeneralProtection));
            assert_eq!(processor.wrmsr(register, 0), REFUSED);
        }
        processor.wrmsr(0xC001_0000, EN | USR | INT | 0xC0).unwrap();
        processor.wrmsr(counter, (1 << 48) - 10).unwrap();
        for (events, top_bit) in [(9, 1), (1, 0), (5, 0)] {
            run(&mut processor, events);
            assert_eq!(processor.rdmsr(counter).unwrap() >> 47, top_bit);
            assert_eq!(processor.interrupt_pending(), top_bit == 0);
        }
    }
}

#[test]
fn m26_amd_event_select_has_12_bits() {
    on_each_unit(|unit, processor| {
        if !unit.amd {
            assert_eq!(processor.wrmsr(unit.select(0), EN | USR | 1 << 32 | 0xC2), REFUSED);
            return;
        }
        for (select, event) in [(0xC2, 0xC2), (1 << 32 | 0xC2, 0x1C2), (0xF << 32 | 0xFF, 0xFFF)] {
            unit.set_select(processor, 0, EN | USR | select);
            assert_eq!(processor.enabled_counters()[0].1.event, event);
            processor.wrmsr(unit.counter(0), 0).unwrap();
            processor.run(Mode::User, &|selected| if selected.event == 0xC2 { 10 } else { 0 });
            assert_eq!(unit.read(processor, 0), if event == 0xC2 { 10 } else { 0 });
        }
    });
}

#[test]
fn m26_amd_event_select_has_8_bits_before_family_10h() {
    let of = |signature| {
        let mut leaves = amd_leaves(0, [0; 4]);
        leaves[2].1[0] = signature;
        Processor::new(cpuid(leaves))
    };
    for (signature, wide) in [(0x0000_0600, false), (0x0000_0F00, false), (0x0010_0F00, true), (0x0050_0F00, true)] {
        let written = of(signature).wrmsr(0xC001_0000, EN | USR | 1 << 32 | 0xC2);
        assert_eq!(written.is_ok(), wide, "{signature:#x}");
        assert!(of(signature).wrmsr(0xC001_0000, EN | USR | 0xC2).is_ok());
    }
}

/// Flips bits of a register and returns whether the register kept the change.
fn writable(processor: &mut Processor, register: u32, bits: u64) -> Result<bool, GeneralProtection> {
    let before = processor.rdmsr(register)?;
    processor.wrmsr(register, before ^ bits)?;
    Ok(processor.rdmsr(register)? == before ^ bits)
}

#[test]
fn m27_write_test_distinguishes_a_pmu_from_ignored_msrs() {
    on_each_unit(|unit, processor| {
        let control = unit.global.map(|global| global.control);
        for register in [unit.select(0), unit.counter(0)].into_iter().chain(control) {
            assert_eq!(writable(processor, register, 1), Ok(true));
        }
    });
    let mut absent = version(0).processor();
    let mut ignoring = version(0).processor().with_absent_msrs_ignored();
    for register in [0x38F, 0x186, 0xC1] {
        assert_eq!(writable(&mut absent, register, 1), Err(GeneralProtection));
        assert_eq!(writable(&mut ignoring, register, 1), Ok(false), "dropped writes");
    }
    assert_eq!(ignoring.accesses().faulted, 0);
    // Invalid accesses to existing registers still fault.
    let mut ignoring = version(5).processor().with_absent_msrs_ignored();
    assert_eq!(ignoring.wrmsr(0x186, 1 << 63), REFUSED);
    assert_eq!(ignoring.rdpmc(64), Err(GeneralProtection));
}

#[test]
fn m28_hypervisor_can_hide_the_pmu() {
    let microsoft = u32::from_le_bytes(*b"Hv#1");
    // (hypervisor bit, interface, leaf 40000003H EDX, hidden)
    let table = [
        (0, 0, 0, false),
        (0, microsoft, 0, false), // no hypervisor: leaf 40000001H is invalid
        (1, 0, 0, false),         // another hypervisor
        (1, microsoft, 0, true),
        (1, microsoft, !0b100, true),
        (1, microsoft, 0b100, false),
    ];
    let intel = Leaf { perf_capabilities: Some(FULL_WIDTH), ..version(5) }.leaves();
    let amd = amd_leaves(1 << 23, [1, 6, 0, 0]);
    for (hypervisor, interface, features, hidden) in table {
        for (leaves, registers) in [
            (&intel, vec![0x186, 0xC1, 0x4C1, 0x309, 0x345, 0x38D, 0x38E, 0x38F, 0x390, 0x391, 0x392]),
            (&amd, vec![0xC001_0000, 0xC001_0004, 0xC001_0200, 0xC001_0201, 0xC000_0300, 0xC000_0301]),
        ] {
            // The first entry for a leaf wins.
            let mut all = vec![(0x4000_0001, [interface, 0, 0, 0]), (0x4000_0003, [0, 0, 0, features])];
            all.push((1, [0, 0, hypervisor << 31 | 1 << 15, 0]));
            all.extend(leaves);
            let mut processor = Processor::new(cpuid(all)).with_perf_capabilities(FULL_WIDTH);
            for register in registers {
                assert_eq!(processor.rdmsr(register).is_err(), hidden, "{register:x}");
            }
            assert_eq!(processor.rdpmc(0).is_err(), hidden);
            assert!(processor.rdmsr(0x1B).is_ok(), "the APIC is not of the PMU");
            if hidden {
                run(&mut processor, 1000);
                assert_eq!((processor.enabled_counters(), entries(&processor)), (vec![], vec![]));
                assert_eq!(processor.architectural_event(0), None);
            }
        }
    }
}

#[test]
fn m28_processor_without_leaf_0a_has_no_pmu() {
    let leaf = version(5);
    let mut short = leaf.leaves();
    short[0].1[0] = 9;
    let other = |leaf_a| other_vendor_leaves(leaf_a);
    for (leaves, exists) in [(short, false), (other([0; 4]), false), (other(leaf.leaves()[2].1), true), (vec![], false)]
    {
        assert_eq!(Processor::new(cpuid(leaves)).rdmsr(0x186).is_ok(), exists);
    }
}
