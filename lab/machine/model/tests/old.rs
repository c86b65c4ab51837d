//! The laws of the PMUs before leaf 0AH: NetBurst, P6, Pentium.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{EN, INT, OS, USR, cpuid, entries, run};
use model::{CounterId, GeneralProtection, Mode, Processor};

const REFUSED: Result<(), GeneralProtection> = Err(GeneralProtection);

/// Creates an Intel processor with highest leaf 2 from its signature and EBX and EDX of leaf 1.
fn intel(signature: u32, package: u32, features: u32) -> Processor {
    Processor::new(cpuid(leaves(signature, package, features)))
}

fn leaves(signature: u32, package: u32, features: u32) -> Vec<(u32, [u32; 4])> {
    vec![(0, [2, 0x756E_6547, 0x6C65_746E, 0x4965_6E69]), (1, [signature, package, 0, features])]
}

/// Bits of `CPUID.1:EDX`.
const MSR: u32 = 1 << 5;
const MMX: u32 = 1 << 23;
const HTT: u32 = 1 << 28;

fn netburst() -> Processor {
    intel(0x0F29, 1 << 16, HTT)
}

/// Creates the two threads of a core.
fn threads() -> [Processor; 2] {
    let first = intel(0x0F29, 2 << 16, HTT);
    let second = first.other_thread(cpuid(leaves(0x0F29, 1 << 24 | 2 << 16, HTT))).unwrap();
    [first, second]
}

fn p6() -> Processor {
    intel(0x0683, 0, MSR)
}

fn pentium() -> Processor {
    intel(0x0543, 0, MSR | MMX)
}

const ENABLE: u64 = 1 << 12;
const ANY_THREAD: u64 = 3 << 16;
const OVF_PMI: [u64; 2] = [1 << 26, 1 << 27];
const OVF: u64 = 1 << 31;
/// The kernel and user mode bits of each thread in an ESCR.
const MODES: [u64; 2] = [0xC, 0x3];

/// First ESCR of a pair, ESCR select, event select, event mask, counters of the first and of the second ESCR.
type Wiring = (u32, u64, u64, u64, &'static [u32], &'static [u32]);

const WIRING: [Wiring; 6] = [
    (0x3A2, 6, 0x13, 0x001, &[0, 1], &[2, 3]),
    (0x3A0, 7, 0x0C, 0x700, &[0, 1], &[2, 3]),
    (0x3B8, 4, 0x02, 0x001, &[12, 13, 16], &[14, 15, 17]),
    (0x3B8, 4, 0x03, 0x001, &[12, 13, 16], &[14, 15, 17]),
    (0x3CC, 5, 0x06, 0x00F, &[12, 13, 16], &[14, 15, 17]),
    (0x3C2, 2, 0x04, 0x01E, &[4, 5], &[6, 7]),
];

fn load(processor: &mut Processor, counter: u32, value: u64) {
    for _ in 0..2 {
        processor.wrmsr(0x300 + counter, value).unwrap();
    }
}

#[test]
fn each_family_has_only_its_own_registers() {
    let registers: [&[u32]; 3] =
        [&[0x300, 0x311, 0x360, 0x371, 0x3A0, 0x3E1], &[0x186, 0x187, 0xC1, 0xC2], &[0x11, 0x12, 0x13]];
    for (own, make) in [netburst, p6, pentium].into_iter().enumerate() {
        let mut processor = make();
        for (family, registers) in registers.iter().enumerate() {
            for register in *registers {
                assert_eq!(processor.rdmsr(*register).is_ok(), family == own, "{register:#x}");
            }
        }
        for beyond in
            [0x2FF, 0x312, 0x35F, 0x372, 0x39F, 0x3BA, 0x3BF, 0x3E2, 0x185, 0x188, 0xC0, 0xC3, 0x10, 0x14, 0x38F]
        {
            assert_eq!(processor.rdmsr(beyond), Err(GeneralProtection), "{beyond:#x}");
        }
    }
    // None of the registers exist under a hypervisor, or with another vendor, another family or a later model.
    let mut under = leaves(0x0F29, 0, HTT);
    under[1].1[2] = 1 << 31;
    let mut other = leaves(0x0F29, 0, HTT);
    other[0].1[1] = 0;
    for leaves in [
        under,
        other,
        leaves(0x10_0F29, 0, HTT),
        leaves(0x0743, 0, MSR),
        leaves(0x0590, 0, MSR),
        leaves(0x06E8, 0, MSR),
    ] {
        let mut processor = Processor::new(cpuid(leaves));
        for register in registers.concat() {
            assert_eq!(processor.rdmsr(register), Err(GeneralProtection), "{register:#x}");
        }
    }
}

/// A processor, a register and its writable bits.
type Valid = (fn() -> Processor, u32, u64);

#[test]
fn reserved_bits_are_refused_and_other_bits_kept() {
    let cases: [Valid; 8] = [
        (netburst, 0x360, 0xC7FF_F000),
        (|| threads()[0].other_thread(cpuid(leaves(0x0F29, 0, HTT))).unwrap(), 0x360, 0xCFFF_F000),
        (netburst, 0x3B8, 0x7FFF_FFFC),
        (|| threads()[0].other_thread(cpuid(leaves(0x0F29, 0, HTT))).unwrap(), 0x3B8, 0x7FFF_FFFF),
        (p6, 0x186, 0xFFDF_FFFF),
        (p6, 0x187, 0xFF9F_FFFF),
        (pentium, 0x11, 0x03FF_03FF),
        (pentium, 0x12, 0xFF_FFFF_FFFF),
    ];
    for (make, register, valid) in cases {
        for bit in 0..64 {
            let mut processor = make();
            let before = processor.rdmsr(register);
            let allowed = valid >> bit & 1 == 1;
            assert_eq!(processor.wrmsr(register, 1 << bit).is_ok(), allowed, "{register:#x} bit {bit}");
            let after = if allowed { Ok(1 << bit) } else { before };
            assert_eq!(processor.rdmsr(register), after, "{register:#x} bit {bit}");
        }
    }
    assert_eq!(netburst().wrmsr(0x300, 1 << 40), REFUSED);
}

#[test]
fn netburst_counters_count_the_events_of_their_own_escr() {
    for (escr, select, event, mask, first, second) in WIRING {
        for column in 0..2 {
            for counter in 0..18 {
                let mut processor = netburst();
                processor.wrmsr(escr + column, event << 25 | mask << 9 | MODES[0]).unwrap();
                processor.wrmsr(0x360 + counter, ENABLE | ANY_THREAD | select << 13).unwrap();
                run(&mut processor, 77);
                let wired = [first, second][column as usize].contains(&counter);
                assert_eq!(processor.rdpmc(counter), Ok(if wired { 77 } else { 0 }), "{escr:#x} {column} {counter}");
                assert_eq!(processor.enabled_counters().len(), usize::from(wired));
            }
        }
    }
}

#[test]
fn netburst_counts_only_with_a_complete_configuration() {
    let (escr, cccr) = (0x13 << 25 | 1 << 9 | MODES[0], ENABLE | ANY_THREAD | 6 << 13);
    let cases = [
        (escr, cccr, [5, 7]),
        (escr & !4, cccr, [0, 7]),
        (escr & !8, cccr, [5, 0]),
        (escr & !0xC, cccr, [0, 0]),
        (escr, cccr & !ENABLE, [0, 0]),
        (escr, cccr & !(1 << 16), [0, 0]),
        (escr, cccr & !ANY_THREAD, [0, 0]),
        (escr, cccr ^ 1 << 13, [0, 0]),
        (escr ^ 1 << 25, cccr, [0, 0]),
        (escr ^ 1 << 9, cccr, [0, 0]),
    ];
    for (escr, cccr, [user, kernel]) in cases {
        let mut processor = netburst();
        processor.wrmsr(0x3A2, escr).unwrap();
        processor.wrmsr(0x360, cccr).unwrap();
        processor.run(Mode::User, &|selected| u64::from((selected.event, selected.umask) == (0x13, 1)) * 5);
        processor.run(Mode::Kernel, &|_| 7);
        assert_eq!(processor.rdmsr(0x300), Ok(user + kernel), "{escr:#x} {cccr:#x}");
    }
}

#[test]
fn netburst_loads_a_counter_completely_on_the_second_consecutive_write() {
    let mut processor = netburst();
    let (value, other) = (0xFF_8000_0001, 0x12_0000_0034);
    processor.wrmsr(0x300, value).unwrap();
    assert_eq!(processor.rdmsr(0x300), Ok(value & 0xFFFF_FFFF));
    processor.wrmsr(0x300, value).unwrap();
    assert_eq!(processor.rdmsr(0x300), Ok(value));
    processor.wrmsr(0x300, other).unwrap();
    assert_eq!(processor.rdmsr(0x300), Ok(0xFF_0000_0034));
    for between in [(0x301, other), (0x360, 0), (0x3A2, 0)] {
        processor.wrmsr(between.0, between.1).unwrap();
        processor.wrmsr(0x300, other).unwrap();
        assert_eq!(processor.rdmsr(0x300), Ok(0xFF_0000_0034), "{between:x?}");
    }
    assert_eq!(processor.rdpmc(1 << 31), Ok(0x34), "the fast read");
    assert_eq!(processor.rdpmc(18), Err(GeneralProtection));
}

#[test]
fn writes_by_the_other_thread_do_not_interrupt_a_repeated_write() {
    let [mut first, mut second] = threads();
    let value = 0xFF_8000_0001;
    for (register, other) in [(0x300, 0x302), (0x30C, 0x36E)] {
        first.wrmsr(register, value).unwrap();
        second.wrmsr(other, 0).unwrap();
        first.wrmsr(register, value).unwrap();
        assert_eq!(first.rdmsr(register), Ok(value), "{register:#x}");
    }
}

#[test]
fn netburst_interrupts_on_overflow_and_again_when_ovf_is_written_back() {
    for pmi in [0, OVF_PMI[0]] {
        let mut processor = netburst();
        let cccr = ENABLE | ANY_THREAD | 6 << 13 | pmi;
        processor.wrmsr(0x3A2, 0x13 << 25 | 1 << 9 | MODES[0]).unwrap();
        load(&mut processor, 0, (1 << 40) - 100);
        processor.wrmsr(0x360, cccr).unwrap();
        assert_eq!(processor.until_overflow(CounterId::General(0)), Some(100));
        run(&mut processor, 99);
        assert_eq!(processor.rdmsr(0x360), Ok(cccr));
        run(&mut processor, 3);
        assert_eq!((processor.rdmsr(0x360), processor.rdmsr(0x300)), (Ok(cccr | OVF), Ok(2)));
        let asked = pmi != 0;
        assert_eq!(processor.take_interrupt(), asked);
        assert_eq!(processor.lvt() >> 16 & 1 == 1, asked, "masked at delivery");
        processor.set_lvt(0xFE);
        processor.wrmsr(0x360, cccr | OVF).unwrap();
        assert_eq!(processor.take_interrupt(), asked, "again");
        processor.set_lvt(0xFE);
        processor.wrmsr(0x360, cccr).unwrap();
        assert!(!processor.interrupt_pending());
        assert_eq!(entries(&processor)[0].overflows, 1);
    }
}

#[test]
fn netburst_threads_share_registers_but_have_their_own_mode_and_interrupt_bits() {
    for thread in [0, 1] {
        let mut threads = threads();
        let cccr = ENABLE | ANY_THREAD | 4 << 13 | OVF_PMI[thread];
        // One thread writes, the other reads.
        threads[0].wrmsr(0x3B8, 0x02 << 25 | 1 << 9 | MODES[thread]).unwrap();
        load(&mut threads[1], 12, (1 << 40) - 10);
        threads[0].wrmsr(0x36C, cccr).unwrap();
        assert_eq!(threads[1].rdmsr(0x36C), Ok(cccr));
        run(&mut threads[1 - thread], 1_000);
        assert_eq!(threads[thread].rdpmc(12), Ok((1 << 40) - 10));
        run(&mut threads[thread], 10);
        assert_eq!(threads[1 - thread].rdpmc(12), Ok(0));
        assert_eq!(threads.map(|thread| thread.interrupt_pending()), [thread == 0, thread == 1]);
    }
    assert!(netburst().other_thread(cpuid(vec![])).is_none());
}

#[test]
fn p6_has_one_enable_flag_for_both_counters() {
    for (first, second, counts) in [
        (EN | USR | 0xC0, USR | 0x79, [50, 50]),
        (EN, USR | OS | 0x79, [0, 50]),
        (USR | 0xC0, USR | 0x79, [0, 0]),
        (EN | OS | 0xC0, OS | 0x79, [0, 0]),
    ] {
        let mut processor = p6();
        processor.wrmsr(0x187, second).unwrap();
        processor.wrmsr(0x186, first).unwrap();
        run(&mut processor, 50);
        assert_eq!([0, 1].map(|counter| processor.rdpmc(counter).unwrap()), counts, "{first:#x} {second:#x}");
    }
    assert_eq!(p6().rdpmc(2), Err(GeneralProtection));
}

#[test]
fn p6_sign_extends_bit_31_and_interrupts_if_int_is_set() {
    for (written, held) in [(0x7FFF_FFFF, 0x7FFF_FFFF), (0x8000_0000, 0xFF_8000_0000), (0x12_0000_0001, 1)] {
        let mut processor = p6();
        processor.wrmsr(0xC2, written).unwrap();
        assert_eq!(processor.rdmsr(0xC2), Ok(held), "{written:#x}");
    }
    for interrupt in [0, INT] {
        let mut processor = p6();
        processor.wrmsr(0xC1, 0xFFFF_FFFF).unwrap();
        processor.wrmsr(0x186, EN | USR | interrupt | 0xC0).unwrap();
        run(&mut processor, 1);
        assert_eq!(processor.take_interrupt(), interrupt != 0);
        assert_eq!(processor.lvt() >> 16 & 1 == 1, interrupt != 0);
    }
}

#[test]
fn pentium_halves_of_one_register_control_two_counters_without_interrupts() {
    for counter in 0..2_u32 {
        for control in 0..8_u64 {
            let mut processor = pentium();
            processor.wrmsr(0x12 + counter, 0xFF_FFFF_FFFF).unwrap();
            processor.wrmsr(0x11, (control << 6 | 0x16) << (16 * counter)).unwrap();
            processor.run(Mode::User, &|selected| u64::from(selected.event == 0x16) * 30);
            processor.run(Mode::Kernel, &|_| 400);
            let counted = if control < 4 { (control >> 1) * 30 + (control & 1) * 400 } else { 0 };
            let value = (0xFF_FFFF_FFFF + counted) & 0xFF_FFFF_FFFF;
            assert_eq!(processor.rdpmc(counter), Ok(value), "{counter} {control}");
            assert!(!processor.interrupt_pending());
        }
    }
    let mut without_mmx = intel(0x0525, 0, MSR);
    assert_eq!((without_mmx.rdpmc(0), without_mmx.rdmsr(0x12)), (Err(GeneralProtection), Ok(0)));
    assert_eq!(intel(0x0543, 0, 0).rdmsr(0x12), Err(GeneralProtection));
}
