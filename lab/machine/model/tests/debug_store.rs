//! The laws of the Debug Store: its registers, and the records that the processor writes to memory.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::common::{EN, INT, Leaf, OS, USR, amd_v2, cpuid, entries, version};
use debug_store::Buffer;
use debug_store::pebs::{Format, Part, PebsRecord};
use model::{
    Branch, CounterId, GeneralProtection, INSTRUCTION_LENGTH, Memory, Mode, Processor, RecordedAccess, Stored,
};
use proptest::prelude::*;

const MISC_ENABLE: u32 = 0x1A0;
const DEBUGCTL: u32 = 0x1D9;
const DS_AREA: u32 = 0x600;
const PEBS_ENABLE: u32 = 0x3F1;
const DATA_CFG: u32 = 0x3F2;
const REGISTERS: [u32; 5] = [MISC_ENABLE, DEBUGCTL, DS_AREA, PEBS_ENABLE, DATA_CFG];

const SELECT: u32 = 0x186;
const STATUS: u32 = 0x38E;
const STATUS_RESET: u32 = 0x390;
const ADAPTIVE: u64 = 1 << 34;
const BASELINE: u64 = 1 << 14;
const BUFFER_FULL: u64 = 1 << 62;

/// `DS` is a bit of `CPUID.1:EDX`; the other bits are in ECX.
const DS: u32 = 1 << 21;
const DTES64: u32 = 1 << 2;
const DS_CPL: u32 = 1 << 4;
const PDCM: u32 = 1 << 15;
const ALL: u32 = DTES64 | DS_CPL | PDCM;

const SKYLAKE: u32 = 0x0005_06E3;
const ICE_LAKE: u32 = 0x0007_06E5;
const ALDER_LAKE: u32 = 0x0009_0672;
const IRWINDALE: u32 = 0x0000_0F4A;
const YONAH: u32 = 0x0000_06E8;
const COPPERMINE: u32 = 0x0000_0683;
const PENTIUM: u32 = 0x0000_0543;

/// Creates an Intel processor from leaf 0AH and EAX, ECX and EDX of leaf 1.
fn intel(leaf: Leaf, signature: u32, more: u32, features: u32) -> Processor {
    let mut leaves = leaf.leaves();
    leaves[1].1 = [signature, 0, more, features];
    Processor::new(cpuid(leaves)).with_perf_capabilities(leaf.perf_capabilities.unwrap_or(0))
}

/// Creates a processor with all features and this value in `IA32_PERF_CAPABILITIES`.
fn with_capabilities(capabilities: u64) -> Processor {
    intel(Leaf { perf_capabilities: Some(capabilities), ..version(5) }, ICE_LAKE, ALL, DS)
}

fn capabilities(format: u64) -> u64 {
    format << 8 | if format >= 4 { BASELINE } else { 0 }
}

/// Creates an Intel processor without leaf 0AH.
fn old(signature: u32, more: u32, features: u32) -> Processor {
    let mut leaves = version(0).leaves();
    leaves[0].1[0] = 5;
    leaves[1].1 = [signature, 0, more, features];
    Processor::new(cpuid(leaves))
}

/// Returns the bits that a register accepts when they are written one at a time.
fn writable_bits(processor: &mut Processor, register: u32) -> u64 {
    (0..64).map(|bit| 1u64 << bit).filter(|&value| processor.wrmsr(register, value).is_ok()).sum()
}

#[test]
fn a_processor_has_the_registers_that_cpuid_enumerates() {
    let [store, format_0, baseline] = [[true, true, true, false, false], [true, true, true, true, false], [true; 5]];
    let nothing = [false; 5];
    let misc_alone = [true, false, false, false, false];
    let at = |number, capabilities| Leaf { perf_capabilities: Some(capabilities), ..version(number) };
    for (name, mut processor, exist) in vec![
        ("everything", with_capabilities(capabilities(4)), baseline),
        ("no adaptive records", with_capabilities(capabilities(3)), format_0),
        ("an unknown format", with_capabilities(7 << 8 | BASELINE), store),
        ("no capabilities, whatever they would be", intel(at(2, capabilities(4)), SKYLAKE, DTES64, DS), format_0),
        ("version 1", intel(at(1, 0), YONAH, ALL, DS), store),
        ("no Debug Store", intel(at(5, capabilities(4)), SKYLAKE, ALL, 0), [true, true, false, false, false]),
        ("PEBS unavailable", with_capabilities(capabilities(4)).with_misc_enable(1 << 12 | 1 << 7), store),
        ("BTS unavailable", with_capabilities(capabilities(4)).with_misc_enable(1 << 11 | 1 << 7), baseline),
        ("no counters", old(SKYLAKE, ALL, DS), store),
        ("NetBurst", old(IRWINDALE, ALL, DS), store),
        ("NetBurst without", old(IRWINDALE, ALL, 0), misc_alone),
        ("P6 has no Debug Store and no such register", old(COPPERMINE, 0, 0), nothing),
        ("Pentium", old(PENTIUM, 0, 0), nothing),
    ] {
        assert_eq!(REGISTERS.map(|register| processor.rdmsr(register).is_ok()), exist, "{name}");
        let zero = REGISTERS.map(|register| processor.wrmsr(register, 0).is_ok());
        assert_eq!((zero[0], &zero[1..]), (false, &exist[1..]), "{name}");
    }
    let mut amd = amd_v2();
    for register in [MISC_ENABLE, DS_AREA, PEBS_ENABLE, DATA_CFG] {
        assert_eq!(amd.rdmsr(register), Err(GeneralProtection), "{register:#x}");
    }
}

#[test]
fn misc_enable_reports_availability_and_is_read_only() {
    for (name, processor, value) in [
        ("everything", with_capabilities(0), 1 << 7),
        ("no Debug Store", intel(version(5), SKYLAKE, ALL, 0), 1 << 7 | 1 << 11 | 1 << 12),
        ("NetBurst", old(IRWINDALE, ALL, DS), 1 << 7),
        ("no counters", old(SKYLAKE, ALL, DS), 0),
        ("neither", old(SKYLAKE, ALL, 0), 1 << 11 | 1 << 12),
        ("as told", with_capabilities(0).with_misc_enable(u64::MAX), 1 << 7 | 1 << 11 | 1 << 12),
        ("nothing unavailable", with_capabilities(0).with_misc_enable(0), 0),
    ] {
        let mut processor = processor;
        assert_eq!(processor.rdmsr(MISC_ENABLE), Ok(value), "{name}");
        assert_eq!(writable_bits(&mut processor, MISC_ENABLE), 0, "{name}");
        assert_eq!(processor.wrmsr(MISC_ENABLE, value), Err(GeneralProtection), "{name}");
    }
}

#[test]
fn a_hypervisor_that_hides_the_pmu_hides_the_debug_store() {
    let mut leaves = version(5).leaves();
    leaves[1].1 = [SKYLAKE, 0, ALL | 1 << 31, DS];
    leaves.push((0x4000_0001, [u32::from_le_bytes(*b"Hv#1"), 0, 0, 0]));
    let mut processor = Processor::new(cpuid(leaves));
    assert_eq!(REGISTERS.map(|register| processor.rdmsr(register).ok()), [Some(0x1800), None, None, None, None]);
}

/// A processor, a register and its writable bits.
type Case = (Box<dyn Fn() -> Processor>, u32, u64);

#[test]
fn reserved_bits_are_refused() {
    let few = Leaf { general: 3, fixed: 2, ..version(5) };
    let with = |leaf: Leaf, capabilities| Leaf { perf_capabilities: Some(capabilities), ..leaf };
    let all = |capabilities| move || with_capabilities(capabilities);
    let few_with = |capabilities| move || intel(with(few, capabilities), SKYLAKE, ALL, DS);
    let canonical = !0 >> 17;
    let cases: [Case; 19] = [
        (Box::new(all(0)), DEBUGCTL, 0x1FC3),
        (Box::new(all(1 << 12)), DEBUGCTL, 0x5FC3),
        (Box::new(|| intel(version(5), SKYLAKE, DTES64 | DS_CPL, DS)), DEBUGCTL, 0x07C3),
        (Box::new(|| intel(version(5), SKYLAKE, DTES64, DS)), DEBUGCTL, 0x01C3),
        (Box::new(|| old(IRWINDALE, DTES64 | DS_CPL, DS)), DEBUGCTL, 0x7F),
        (Box::new(|| old(IRWINDALE, DTES64, DS)), DEBUGCTL, 0x1F),
        (Box::new(all(0)), DS_AREA, canonical),
        (Box::new(|| intel(version(5), SKYLAKE, 0, DS)), DS_AREA, 0xFFFF_FFFF),
        (Box::new(all(capabilities(0))), PEBS_ENABLE, 0b1),
        (Box::new(all(capabilities(1))), PEBS_ENABLE, 0xF_0000_000F),
        (Box::new(few_with(capabilities(3))), PEBS_ENABLE, 0x7_0000_0007),
        (Box::new(all(capabilities(4))), PEBS_ENABLE, 0xF_0000_00FF),
        (Box::new(few_with(capabilities(5))), PEBS_ENABLE, 0x3_0000_0007),
        (Box::new(all(4 << 8)), PEBS_ENABLE, 0xFF),
        (Box::new(all(capabilities(4))), DATA_CFG, 0xFF00_000F),
        (Box::new(all(capabilities(3))), SELECT, 0xFFD7_FFFF),
        (Box::new(all(capabilities(4))), SELECT, 0x4_FFD7_FFFF),
        (Box::new(all(capabilities(3))), 0x38D, 0xBBBB),
        (Box::new(few_with(capabilities(4))), 0x38D, 0x11_0000_00BB),
    ];
    for (make, register, valid) in cases {
        assert_eq!(writable_bits(&mut make(), register), valid, "{register:#x}");
    }
    for (address, is_canonical) in
        [(0xFFFF_8000_0000_0000, true), (u64::MAX, true), (0xFFFF_0000_0000_0000, false), (1 << 47, false)]
    {
        assert_eq!(with_capabilities(0).wrmsr(DS_AREA, address).is_ok(), is_canonical, "{address:#x}");
    }
}

#[test]
fn losing_power_resets_the_registers_except_misc_enable() {
    let mut processor = with_capabilities(capabilities(4)).with_misc_enable(1 << 11);
    for (register, value) in [(DEBUGCTL, 0x1C0), (DS_AREA, 0x1000), (PEBS_ENABLE, 1), (DATA_CFG, 2)] {
        processor.wrmsr(register, value).unwrap();
        assert_eq!(processor.rdmsr(register), Ok(value));
    }
    processor.lose_power();
    assert_eq!(REGISTERS.map(|register| processor.rdmsr(register)), [Ok(1 << 11), Ok(0), Ok(0), Ok(0), Ok(0)]);
}

/// The mapped words.
#[derive(Clone, Default)]
struct Words(Arc<Mutex<BTreeMap<u64, u64>>>);

impl Memory for Words {
    fn read(&self, address: u64) -> Option<u64> {
        self.0.lock().unwrap().get(&address).copied()
    }

    fn write(&self, address: u64, value: u64) -> bool {
        self.0.lock().unwrap().get_mut(&address).map(|word| *word = value).is_some()
    }

    fn linear(&self, _: u64) -> Option<u64> {
        None
    }
}

const AREA: u64 = 0x10_0000;
const BTS: u64 = 0x20_0000;
const PEBS: u64 = 0x30_0000;

impl Words {
    fn map(&self, address: u64, bytes: u64) {
        self.0.lock().unwrap().extend((address..address + bytes).step_by(8).map(|address| (address, 0)));
    }

    fn unmap(&self, address: u64) {
        self.0.lock().unwrap().remove(&address);
    }

    fn get(&self, address: u64) -> u64 {
        self.read(address).unwrap()
    }

    fn set(&self, address: u64, value: u64) {
        assert!(self.write(address, value));
    }

    fn all(&self) -> BTreeMap<u64, u64> {
        self.0.lock().unwrap().clone()
    }

    /// Returns the index of the buffer that the words at offset `first` describe.
    fn index(&self, first: u64) -> u64 {
        self.get(AREA + first + 8)
    }
}

/// Maps buffers of branch records and PEBS records, each with its size and threshold in bytes, and points the processor
/// at them.
fn with_buffers(mut processor: Processor, branches: [u64; 2], events: [u64; 2]) -> (Processor, Words) {
    let words = Words::default();
    words.map(AREA, 0x1C0);
    for (first, base, [bytes, threshold]) in [(0, BTS, branches), (0x20, PEBS, events)] {
        words.map(base, bytes);
        for (word, value) in [base, base, base + bytes, base + threshold].into_iter().enumerate() {
            words.set(AREA + first + 8 * word as u64, value);
        }
    }
    processor.set_memory(Box::new(words.clone()));
    processor.wrmsr(DS_AREA, AREA).unwrap();
    (processor, words)
}

const TR: u64 = 1 << 6;
const BTS_ON: u64 = 1 << 7;
const BTINT: u64 = 1 << 8;
const OFF_OS: u64 = 1 << 9;
const OFF_USR: u64 = 1 << 10;

fn branch(number: u64) -> Branch {
    Branch { from: 0x1000 + number, to: 0x2000 + number, predicted: number % 2 == 1 }
}

fn branches(words: &Words, from: u64, to: u64) -> Vec<(u64, bool)> {
    let records = (from..to).step_by(24).map(|record| {
        let [from, to, flags] = [0, 8, 16].map(|offset| words.get(record + offset));
        assert_eq!(to, from + 0x1000);
        assert_eq!(flags & !(1 << 4), 0);
        (from - 0x1000, flags == 1 << 4)
    });
    records.collect()
}

#[test]
fn branches_are_written_in_the_enabled_modes() {
    for (control, user, kernel) in [
        (0, 0, 0),
        (TR, 0, 0),
        (BTS_ON, 0, 0),
        (TR | BTS_ON, 1, 1),
        (TR | BTS_ON | OFF_OS, 1, 0),
        (TR | BTS_ON | OFF_USR, 0, 1),
        (TR | BTS_ON | OFF_OS | OFF_USR, 0, 0),
    ] {
        for (mode, written) in [(Mode::User, user), (Mode::Kernel, kernel)] {
            let (mut processor, words) = with_buffers(with_capabilities(0), [240, 240], [0, 0]);
            processor.wrmsr(DEBUGCTL, control).unwrap();
            assert_eq!(processor.stores_branches(), user + kernel > 0, "{control:#x}");
            processor.branch(mode, branch(7));
            assert_eq!(words.index(0), BTS + 24 * written, "{control:#x} {mode:?}");
            assert_eq!(processor.stored(), &Stored { branches: written, ..Stored::default() });
            assert_eq!(branches(&words, BTS, words.index(0)), vec![(7, true); usize::try_from(written).unwrap()]);
        }
    }
    for (make, stores) in [
        (old(IRWINDALE, ALL, DS), true),
        (with_capabilities(0).with_misc_enable(1 << 11), false),
        (intel(version(5), SKYLAKE, DS_CPL, DS), false),
    ] {
        let bits = if stores { 0b1_1100 } else { TR | BTS_ON };
        let (mut processor, _) = with_buffers(make, [240, 240], [0, 0]);
        processor.wrmsr(DEBUGCTL, bits).unwrap();
        processor.branch(Mode::User, branch(0));
        assert_eq!(processor.stored().branches, u64::from(stores));
    }
}

#[test]
fn netburst_has_its_own_bts_control_bits() {
    for (control, user, kernel) in
        [(0b1100, 1, 1), (0b10_1100, 1, 0), (0b100_1100, 0, 1), (0b0100, 0, 0), (0b1000, 0, 0)]
    {
        for (mode, written) in [(Mode::User, user), (Mode::Kernel, kernel)] {
            let (mut processor, _) = with_buffers(old(IRWINDALE, ALL, DS), [240, 240], [0, 0]);
            processor.wrmsr(DEBUGCTL, control).unwrap();
            processor.branch(mode, branch(0));
            assert_eq!(processor.stored().branches, written, "{control:#b} {mode:?}");
        }
    }
}

#[test]
fn the_branch_buffer_is_circular_without_an_interrupt() {
    let (mut processor, words) = with_buffers(with_capabilities(0), [3 * 24 + 8, 24], [0, 0]);
    processor.wrmsr(DEBUGCTL, TR | BTS_ON).unwrap();
    for (number, index) in [1, 2, 3, 1, 2].into_iter().enumerate() {
        processor.branch(Mode::Kernel, branch(number as u64));
        assert_eq!(words.index(0), BTS + 24 * index, "{number}");
    }
    assert_eq!(branches(&words, BTS, BTS + 72), [(3, true), (4, false), (2, false)]);
    assert_eq!(processor.stored(), &Stored { branches: 5, ..Stored::default() });
    assert!(!processor.interrupt_pending());
}

#[test]
fn the_branch_buffer_interrupts_at_the_threshold_and_drops_records_when_full() {
    let (mut processor, words) = with_buffers(with_capabilities(0), [3 * 24 + 8, 2 * 24], [0, 0]);
    processor.wrmsr(DEBUGCTL, TR | BTS_ON | BTINT).unwrap();
    for (pending, written) in [(false, 1), (true, 2), (true, 3), (true, 3), (true, 3)] {
        processor.branch(Mode::User, branch(written));
        assert_eq!((processor.interrupt_pending(), processor.stored().branches), (pending, written));
        assert_eq!(words.index(0), BTS + 24 * written);
    }
    assert_eq!(processor.stored().branches_refused, 2);
    assert_eq!((processor.rdmsr(STATUS), processor.take_interrupt()), (Ok(0), true), "no status tells of it");
    assert_eq!(entries(&processor), []);
    // Every record at or above the threshold interrupts.
    processor.set_lvt(0xFE);
    words.set(AREA + 8, BTS + 24);
    processor.branch(Mode::User, branch(0));
    assert!(processor.interrupt_pending());
}

#[test]
fn invalid_buffer_bounds_drop_every_record() {
    for (base, index, maximum) in [
        (BTS + 24, BTS, BTS + 240),
        (BTS, BTS + 24, BTS + 24),
        (BTS, BTS + 48, BTS + 24),
        (BTS, BTS, BTS),
        (BTS, u64::MAX - 7, u64::MAX),
    ] {
        for interrupts in [0, BTINT] {
            if interrupts == 0 && base < index && index <= maximum {
                continue; // a full circular buffer wraps
            }
            let (mut processor, words) = with_buffers(with_capabilities(capabilities(4)), [240, 240], [0, 0]);
            for first in [0, 0x20] {
                [base, index, maximum]
                    .iter()
                    .zip(0..)
                    .for_each(|(value, word)| words.set(AREA + first + 8 * word, *value));
            }
            let before = words.all();
            processor.wrmsr(DEBUGCTL, TR | BTS_ON | interrupts).unwrap();
            processor.branch(Mode::User, branch(0));
            precise(&mut processor, 0, 1);
            processor.run(Mode::User, &|_| 2);
            assert_eq!(words.all(), before, "{base:#x} {index:#x} {maximum:#x}");
            assert_eq!(
                processor.stored(),
                &Stored { branches_refused: 1, records_refused: 1, ..Stored::default() },
                "{base:#x} {index:#x} {maximum:#x}"
            );
        }
    }
}

/// Enables PEBS on general counter `number`, which overflows after `distance` events.
fn precise(processor: &mut Processor, number: u32, distance: u32) {
    processor.wrmsr(0xC1 + number, u64::from(distance).wrapping_neg() & 0xFFFF_FFFF).unwrap();
    processor.wrmsr(SELECT + number, EN | USR | OS | 0xC0).unwrap();
    let enabled = processor.rdmsr(PEBS_ENABLE).unwrap();
    processor.wrmsr(PEBS_ENABLE, enabled | 1 << number).unwrap();
    processor.wrmsr(0x38F, 0xF_0000_00FF).unwrap();
}

const IP: u64 = 0x1_4000_1230;
const TIME: u64 = 0x7777_8888;

/// Returns the recorded value of the general register with this encoding.
fn register(number: u64) -> u64 {
    0x0101_0101_0101_0101 * (number + 1)
}

#[test]
fn fixed_record_fields_have_the_documented_offsets() {
    for (format, size) in [(0, 144), (1, 176), (2, 192), (3, 200)] {
        let number = if format == 0 { 0 } else { 3 };
        let (mut processor, words) = with_buffers(with_capabilities(capabilities(format)), [0, 0], [1000, 1000]);
        precise(&mut processor, number, 1);
        processor.set_place(IP, TIME);
        processor.run(Mode::User, &|_| 2);
        assert_eq!(words.index(0x20), PEBS + size, "{format}");
        let numbers = [0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];
        let mut expected = vec![(0x00, 0x246), (0x08, IP + INSTRUCTION_LENGTH)];
        expected.extend((0x10..).step_by(8).zip(numbers.map(register)));
        if format >= 1 {
            expected.extend([(0x90, 1 << number), (0x98, 0), (0xA0, 0), (0xA8, 0)]);
        }
        if format >= 2 {
            expected.extend([(0xB0, IP), (0xB8, 0)]);
        }
        if format >= 3 {
            expected.push((0xC0, TIME));
        }
        let found: Vec<_> = expected.iter().map(|(offset, _)| (*offset, words.get(PEBS + offset))).collect();
        assert_eq!(found, expected, "{format}");
        assert_eq!(expected.len() as u64 * 8, size, "every word was looked at");
    }
}

#[test]
fn adaptive_records_have_the_groups_that_counter_and_register_select() {
    for format in [4, 5] {
        for groups in 0..16 {
            for adaptive in [0, ADAPTIVE] {
                let (mut processor, words) =
                    with_buffers(with_capabilities(capabilities(format)), [0, 0], [1000, 1000]);
                precise(&mut processor, 5, 1);
                processor.wrmsr(SELECT + 5, EN | USR | adaptive | 0xC0).unwrap();
                processor.wrmsr(DATA_CFG, 2 << 24 | groups).unwrap();
                processor.set_place(IP, TIME);
                processor.run(Mode::User, &|_| 2);
                let shown = if adaptive == 0 { 0 } else { groups };
                let [memory, registers, xmm, branches] = [0, 1, 2, 3].map(|bit| shown >> bit & 1);
                let size = 32 + 32 * memory + 144 * registers + 256 * xmm + 3 * 24 * branches;
                let latency = if format == 5 { 7 << 32 } else { 0 };
                let first = size << 48 | latency | (branches * (2 << 24)) | shown;
                let word = |offset| words.get(PEBS + offset);
                assert_eq!([0, 8, 16, 24].map(word), [first, IP, 1 << 5, TIME], "{format} {groups:#b}");
                assert_eq!(words.index(0x20), PEBS + size, "{format} {groups:#b}");
                if registers == 1 {
                    let numbers: Vec<_> = (0..18).map(|number| word(32 + 32 * memory + 8 * number)).collect();
                    let general: Vec<_> = (0..16).map(register).collect();
                    assert_eq!(numbers, [&[0x246, IP + INSTRUCTION_LENGTH], &*general].concat());
                }
            }
        }
    }
}

#[test]
fn the_product_reads_the_records_of_the_model() {
    for number in 0..6 {
        let format = Format::from_number(number).unwrap();
        let (mut processor, words) = with_buffers(with_capabilities(capabilities(number.into())), [0, 0], [4000, 4000]);
        precise(&mut processor, 0, 1);
        words.set(AREA + 0x40, 10_u64.wrapping_neg());
        for (place, events) in (0..).zip([2, 11, 11]) {
            processor.set_place(IP + place, TIME + place);
            processor.run(Mode::User, &|_| events);
        }
        let [base, index, maximum] = [0x20, 0x28, 0x30].map(|offset| words.get(AREA + offset));
        let written = Buffer { base, index, maximum }.written(4000);
        let size = usize::from(format.least_size());
        assert_eq!(written, 3 * size, "{format:?}");
        for (place, first) in (0..).zip((0..written).step_by(size)) {
            let record = format.part(written - first, |offset| words.get(PEBS + (first + offset) as u64));
            let is_exact = number >= 2;
            let ip = IP + place + if is_exact { 0 } else { INSTRUCTION_LENGTH };
            let counters = (number >= 1).then_some(1);
            // A counter that measures no load latency has what was there before: nothing.
            let nothing = debug_store::pebs::RecordedAccess { address: 0, source: 0, latency: 0 };
            let access = (1..4).contains(&number).then_some(nothing);
            assert_eq!(record, (Part::Record(PebsRecord { ip, is_exact, counters, access }), size), "{format:?}");
        }
    }
}

#[test]
fn the_product_reads_an_adaptive_record_with_the_memory_group_and_rejects_one_with_other_groups() {
    for groups in 0..16 {
        let (mut processor, words) = with_buffers(with_capabilities(capabilities(4)), [0, 0], [4000, 4000]);
        precise(&mut processor, 0, 1);
        processor.wrmsr(SELECT, EN | USR | ADAPTIVE | 0xC0).unwrap();
        processor.wrmsr(DATA_CFG, groups).unwrap();
        processor.run(Mode::User, &|_| 2);
        let written = usize::try_from(words.index(0x20) - PEBS).unwrap();
        let (part, size) = Format::Adaptive.part(written, |offset| words.get(PEBS + offset as u64));
        assert_eq!(size, written, "{groups:#b}");
        assert_eq!(matches!(part, Part::Record(_)), groups < 2, "{groups:#b}");
    }
}

/// Counter 0 records its access by `select`, and a threshold of latency is 30. Returns address, source and latency of
/// its first two records.
fn recorded_accesses((signature, format): (u32, u64), select: u64, enabled: u64, beside: u64) -> Vec<[u64; 3]> {
    let processor =
        intel(Leaf { perf_capabilities: Some(capabilities(format)), general: 8, ..version(5) }, signature, ALL, DS);
    let (mut processor, words) = with_buffers(processor, [0, 0], [4_000, 4_000]);
    let access = |address, latency| RecordedAccess { address, source: 5, latency, instruction_latency: 9 };
    let loads = [access(0x10, 29), access(0x11, 30), access(0x12, 0x1_0040)];
    processor.set_accesses(loads.to_vec(), vec![access(0x20, 50), access(0, 51)]);
    let number = enabled.trailing_zeros();
    precise(&mut processor, number, 1);
    words.set(AREA + 0x40 + 8 * u64::from(number), 1_u64.wrapping_neg());
    let _ = processor.wrmsr(0x3F6, 30);
    let adaptive = if format >= 4 { ADAPTIVE } else { 0 };
    let _ = processor.wrmsr(DATA_CFG, 1);
    processor.wrmsr(SELECT + number, EN | USR | adaptive | select).unwrap();
    processor.wrmsr(SELECT + 7, EN | USR | beside).unwrap();
    processor.wrmsr(PEBS_ENABLE, enabled).unwrap();
    (0..4).for_each(|_| processor.run(Mode::User, &|_| 1));
    let (size, first) =
        if format >= 4 { (64, 32) } else { ([176, 192, 200][usize::try_from(format).unwrap() - 1], 0x98) };
    let written = words.index(0x20) - PEBS;
    assert_eq!(written % size, 0);
    (0..written / size).map(|record| [0, 8, 16].map(|word| words.get(PEBS + record * size + first + word))).collect()
}

#[test]
fn records_have_loads_and_stores_as_each_generation_does() {
    const SANDY_BRIDGE: u32 = 0x0002_06A7;
    const SAPPHIRE_RAPIDS: u32 = 0x0008_06F8;
    const GRANITE_RAPIDS: u32 = 0x000A_06D1;
    const LUNAR_LAKE: u32 = 0x000B_06D1;
    const ALDER_LAKE_N: u32 = 0x000B_06E0;
    let loads = |source, latencies: [u64; 2]| vec![[0x11, source, latencies[0]], [0x12, source, latencies[1]]];
    let plain = loads(5, [30, 0x1_0040]);
    let packed = |source| loads(source, [30 << 32 | 9, 0x40 << 32 | 9]);
    let stores = |latencies: [u64; 2]| vec![[0x20, 5, latencies[0]], [0, 5, latencies[1]]];
    let packed_stores = stores([50 << 32 | 9, 51 << 32 | 9]);
    let nothing = vec![[0; 3]; 2];
    for (what, processor, select, enabled, beside, expected) in [
        ("Sandy Bridge", (SANDY_BRIDGE, 1), 0x01CD, 1 << 35 | 1 << 3, 0, plain.clone()),
        ("on another counter", (SANDY_BRIDGE, 1), 0x01CD, 1 << 34 | 1 << 2, 0, vec![]),
        ("precise store", (SANDY_BRIDGE, 1), 0x02CD, 1 << 63 | 1 << 3, 0, stores([0, 0])),
        ("without its bit", (SANDY_BRIDGE, 1), 0x02CD, 1 << 3, 0, nothing.clone()),
        ("Skylake", (SKYLAKE, 3), 0x01CD, 1 << 32 | 1, 0, plain.clone()),
        ("its stores", (SKYLAKE, 3), 0x82D0, 1, 0, stores([0, 0])),
        ("all its loads", (SKYLAKE, 3), 0x81D0, 1, 0, nothing),
        ("Ice Lake", (ICE_LAKE, 4), 0x01CD, 1, 0, plain),
        ("its stores", (ICE_LAKE, 4), 0x82D0, 1, 0, stores([0, 0])),
        ("Sapphire Rapids", (SAPPHIRE_RAPIDS, 4), 0x01CD, 1 << 1, 0x8203, packed(5)),
        ("without the auxiliary event", (SAPPHIRE_RAPIDS, 4), 0x01CD, 1 << 1, 0x8204, packed(1)),
        ("on counter 0", (SAPPHIRE_RAPIDS, 4), 0x01CD, 1, 0x8203, vec![]),
        ("its stores", (SAPPHIRE_RAPIDS, 4), 0x02CD, 1, 0, packed_stores.clone()),
        ("Granite Rapids needs none", (GRANITE_RAPIDS, 5), 0x01CD, 1 << 1, 0, packed(5)),
        ("Lunar Lake", (LUNAR_LAKE, 6), 0x01CD, 1 << 2, 0, packed(5)),
        ("its stores", (LUNAR_LAKE, 6), 0x02CD, 1 << 1, 0, packed_stores.clone()),
        ("Gracemont", (ALDER_LAKE_N, 5), 0x05D0, 1, 0, packed(5)),
        ("its stores", (ALDER_LAKE_N, 5), 0x06D0, 1 << 5, 0, packed_stores),
    ] {
        let mut found = recorded_accesses(processor, select, enabled, beside);
        found.truncate(2);
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn a_counter_is_reloaded_from_its_own_reset_value_after_each_record() {
    let counters = [
        (0, CounterId::General(0), 0x40),
        (1, CounterId::General(3), 0x58),
        (3, CounterId::General(2), 0x50),
        (4, CounterId::General(7), 0x78),
        (4, CounterId::Fixed(0), 0x80),
        (4, CounterId::Fixed(3), 0x98),
        (5, CounterId::General(7), 0x78),
        (5, CounterId::Fixed(0), 0x140),
        (5, CounterId::Fixed(3), 0x158),
    ];
    for (format, counter, offset) in counters {
        let (mut processor, words) = with_buffers(with_capabilities(capabilities(format)), [0, 0], [1000, 1000]);
        words.set(AREA + offset, 100_u64.wrapping_neg());
        let (register, bit) = match counter {
            CounterId::General(number) => {
                processor.wrmsr(SELECT + u32::from(number), EN | USR | 0xC0).unwrap();
                (0xC1 + u32::from(number), 1 << number)
            }
            CounterId::Fixed(number) => {
                processor.wrmsr(0x38D, 0b0010 << (4 * number)).unwrap();
                (0x309 + u32::from(number), 1 << (32 + number))
            }
            CounterId::Metric(_) => unreachable!("metrics write no records"),
        };
        processor.wrmsr(0x38F, bit).unwrap();
        processor.wrmsr(PEBS_ENABLE, bit).unwrap();
        processor.wrmsr(register, 0xFFFF_FFFF_FFFE & if register < 0x309 { 0xFFFF_FFFF } else { !0 }).unwrap();
        // 2 events to the first overflow and 1 to its record, 100 and 1 to the second, and 3 more. Fixed counter 0
        // makes its records at the overflow.
        processor.run(Mode::User, &|_| 107);
        let more = if counter == CounterId::Fixed(0) { 5 } else { 3 };
        assert_eq!(processor.rdmsr(register), Ok(0xFFFF_FFFF_FFFF - 99 + more), "{format} {counter:?}");
        assert_eq!(processor.stored().records, BTreeMap::from([(counter, 2)]), "{format} {counter:?}");
        assert_eq!(
            words.get(
                PEBS + if format == 0 {
                    0
                } else if format < 4 {
                    0x90
                } else {
                    0x10
                }
            ) & bit,
            if format == 0 { 0 } else { bit }
        );
        let [entry] = entries(&processor)[..] else { panic!("one counter, one entry") };
        assert_eq!((entry.counted, entry.overflows, entry.interrupts), (107, 2, 0), "no interrupt of its own");
        assert_eq!(processor.rdmsr(STATUS), Ok(0), "no status of its own");
    }
}

/// `INT` of the event select register applies to each overflow of the counter (SDM Vol. 3B, 21.2.1.1).
#[test]
fn a_pebs_counter_with_int_set_interrupts_on_each_overflow() {
    let (mut processor, words) = with_buffers(with_capabilities(capabilities(4)), [0, 0], [1000, 1000]);
    words.set(AREA + 0x40, 10_u64.wrapping_neg());
    precise(&mut processor, 0, 10);
    processor.wrmsr(SELECT, EN | USR | INT | 0xC0).unwrap();
    for _ in 0..3 {
        let [interrupting] = processor.interrupting_counters()[..] else { panic!("one counter interrupts") };
        assert_eq!(interrupting.events, 10);
        processor.run(Mode::User, &|_| 10);
        assert_eq!((processor.rdmsr(STATUS), processor.take_interrupt()), (Ok(1), true));
        processor.set_lvt(0xFE);
        processor.run(Mode::User, &|_| 1);
        assert_eq!((processor.rdmsr(STATUS), processor.interrupt_pending()), (Ok(0), false), "the record clears it");
    }
    assert_eq!(processor.stored().records, BTreeMap::from([(CounterId::General(0), 3)]));
}

/// `MSR_PEBS_LD_LAT_THRESHOLD`, and the event beside which Golden Cove measures load latency, which counter 0 does not.
const LATENCY: u32 = 0x3F6;
const AUXILIARY: u64 = 0x8203;

/// A Nehalem, a Westmere, and so on: signatures in CPUID leaf 1.
const NEHALEM: u32 = 0x0001_06A5;
const WESTMERE: u32 = 0x0002_06C2;
const CASCADE_LAKE: u32 = 0x0005_0656;
const SILVERMONT: u32 = 0x0003_0673;
const GOLDMONT: u32 = 0x0005_06C9;
const SAPPHIRE_RAPIDS: u32 = 0x0008_06F8;
const METEOR_LAKE: u32 = 0x000A_06A4;

/// Sandy Bridge, Ivy Bridge, Haswell, Broadwell, Skylake, Cascade Lake.
const FROM_SANDY_BRIDGE: [u32; 6] = [0x0002_06A7, 0x0003_06A9, 0x0003_06C3, 0x0003_06D4, SKYLAKE, CASCADE_LAKE];

/// Checks that exactly the counters `recorded`, of eight, record an event, whatever `IA32_PEBS_ENABLE` enables.
fn check_recorded(signature: u32, core_type: Option<u32>, select: u64, recorded: u64) {
    let what = format!("{signature:#x} {core_type:?} {select:#x}");
    let mut leaves = Leaf { perf_capabilities: Some(capabilities(4)), ..version(5) }.leaves();
    leaves[1].1 = [signature, 0, ALL, DS];
    if let Some(core_type) = core_type {
        leaves[0].1[0] = 0x1A;
        leaves.extend([(7, [0, 0, 0, 1 << 15]), (0x1A, [core_type << 24, 0, 0, 0])]);
    }
    let processor = Processor::new(cpuid(leaves)).with_perf_capabilities(capabilities(4));
    let (mut processor, _) = with_buffers(processor, [0, 0], [4000, 4000]);
    for number in 0..8 {
        precise(&mut processor, number, 1);
        // In both modes: in user mode alone, four of Broadwell's counters count nothing.
        processor.wrmsr(SELECT + number, EN | USR | OS | select).unwrap();
    }
    let has_latency = processor.wrmsr(LATENCY, 3).is_ok();
    if has_latency && select == 0x01CD {
        processor.wrmsr(SELECT, EN | USR | AUXILIARY).unwrap();
    }
    // Twice as many as a record needs: counters of Nehalem that were not reset count half of them.
    processor.run(Mode::User, &|_| 4);
    let records = &processor.stored().records;
    let found: u64 = (0..8).filter(|number| records.contains_key(&CounterId::General(*number))).map(|n| 1 << n).sum();
    assert_eq!(found & 0xFF, recorded & 0xFF, "{what}");
    // Counters that count the event without recording it overflow, and stay so.
    let counting: u64 = entries(&processor)
        .iter()
        .filter_map(|entry| if let CounterId::General(number) = entry.counter { Some(1 << number) } else { None })
        .sum();
    let not_recorded = processor.rdmsr(STATUS).unwrap() & 0xFF;
    assert_eq!((not_recorded, processor.interrupt_pending()), (counting & !recorded, false), "{what}");
}

/// Each case: signature, core type of a hybrid processor, event with unit mask, and the counters that record it, by the
/// columns `PEBS` and `PEBScounters` of Intel's event files.
#[test]
fn unsupported_counters_and_events_write_no_records() {
    let instructions = |umask: u64| 0xC0 | umask << 8;
    for signature in FROM_SANDY_BRIDGE {
        for (select, recorded) in [
            (instructions(0), 0),
            (instructions(1), 0b10),
            (0x00C4, 0),
            (0x00C5, 0),
            (0x04C4, 0xF),
            (0x04C5, 0xF),
            (0x003C, 0),
            (0x412E, 0),
            (0x81D0, 0xF), // MEM_UOPS_RETIRED.ALL_LOADS
            (0x04D0, 0),
            (0x0148, 0), // L1D_PEND_MISS.PENDING
        ] {
            check_recorded(signature, None, select, recorded);
        }
    }
    for (signature, core_type, select, recorded) in [
        (NEHALEM, None, instructions(0), 0),
        (NEHALEM, None, instructions(1), 0xF),
        (NEHALEM, None, 0x00C4, 0),
        (NEHALEM, None, 0x04C4, 0xF),
        (NEHALEM, None, 0x00C5, 0),
        (NEHALEM, None, 0x04C5, 0),
        (NEHALEM, None, 0x02C5, 0xF), // BR_MISP_RETIRED.NEAR_CALL
        (WESTMERE, None, instructions(0), 0),
        (WESTMERE, None, instructions(1), 0xF),
        (WESTMERE, None, 0x04C5, 0xF),
        (CASCADE_LAKE, None, 0x40C4, 0xF), // BR_INST_RETIRED.FAR_BRANCH
        (SKYLAKE, None, 10 << 24 | 1 << 23 | instructions(1), 0),
        (SILVERMONT, None, instructions(0), 0),
        (SILVERMONT, None, 0x00C4, 1),
        (SILVERMONT, None, 0x00C5, 1),
        (SILVERMONT, None, 0x01C4, 0),
        (GOLDMONT, None, instructions(0), 1),
        (ALDER_LAKE, None, instructions(0), 0xFE),
        (ALDER_LAKE, Some(0x40), instructions(0), 0xFE),
        (ALDER_LAKE, Some(0x40), instructions(1), 0), // its precise form is on fixed counter 0
        (ALDER_LAKE, Some(0x40), 0x00C4, 0xFF),
        (ALDER_LAKE, Some(0x40), 0x01CD, 0xFE),
        (ALDER_LAKE, Some(0x40), 0x02CD, 0x01),
        (ALDER_LAKE, Some(0x40), 0x81D0, 0x0F),
        (ALDER_LAKE, Some(0x40), 0x0148, 0),
        (ALDER_LAKE, Some(0x20), instructions(0), 0x3F),
        (ALDER_LAKE, Some(0x20), 0x05D0, 0x03),
        (SAPPHIRE_RAPIDS, None, instructions(0), 0xFE),
        (0x000D_0670, None, instructions(0), 0xFE), // Bartlett Lake
        (METEOR_LAKE, Some(0x40), instructions(0), 0xFE),
        (METEOR_LAKE, Some(0x20), instructions(0), 0xFF),
        (ICE_LAKE, None, instructions(0), 0xFF),
        (ICE_LAKE, None, 0x003C, 0),
        (ICE_LAKE, None, 0x04C4, 0),
        // A model without a table.
        (0x000F_06F0, None, instructions(0), 0xFE),
        (0x000F_06F0, None, 0x00C4, 0xFF),
        (0x000F_06F0, None, 0x81D0, 0),
    ] {
        check_recorded(signature, core_type, select, recorded);
    }
}

#[test]
fn a_record_at_the_threshold_sets_status_bit_62_and_interrupts_once() {
    let (mut processor, words) = with_buffers(with_capabilities(capabilities(4)), [0, 0], [5 * 32, 3 * 32]);
    words.set(AREA + 0x40, 10_u64.wrapping_neg());
    precise(&mut processor, 0, 10);
    for (events, status, pending) in
        [(11, 0, false), (11, 0, false), (9, 0, false), (1, 1, false), (1, BUFFER_FULL, true), (11, BUFFER_FULL, true)]
    {
        processor.run(Mode::Kernel, &|_| events);
        assert_eq!((processor.rdmsr(STATUS), processor.interrupt_pending()), (Ok(status), pending));
    }
    assert_eq!(entries(&processor).iter().map(|entry| entry.interrupts).sum::<u64>(), 1);
    assert!(processor.take_interrupt());
    processor.wrmsr(STATUS_RESET, BUFFER_FULL).unwrap();
    assert_eq!(processor.rdmsr(STATUS), Ok(0));
    processor.set_lvt(0xFE);
    // The last record that fits interrupts; records that do not fit are not reported.
    processor.run(Mode::Kernel, &|_| 11);
    assert!(processor.take_interrupt());
    processor.wrmsr(STATUS_RESET, BUFFER_FULL).unwrap();
    processor.run(Mode::Kernel, &|_| 22);
    assert_eq!((processor.rdmsr(STATUS), processor.interrupt_pending()), (Ok(1), false));
    let records = BTreeMap::from([(CounterId::General(0), 5)]);
    // The counter is not reloaded, and each event after the overflow tries to write the record.
    assert_eq!(processor.stored(), &Stored { records, records_refused: 12, ..Stored::default() });
    assert_eq!(processor.rdpmc(0), Ok(12));
    words.set(AREA + 0x28, PEBS);
    processor.run(Mode::Kernel, &|_| 1);
    assert_eq!(processor.stored().records, BTreeMap::from([(CounterId::General(0), 6)]));
    assert_eq!(processor.rdpmc(0), Ok(10_u64.wrapping_neg() & 0xFFFF_FFFF_FFFF));
    processor.clear_ledger();
    assert_eq!(processor.stored(), &Stored::default());
}

#[test]
fn a_counter_without_pebs_still_overflows_beside_one_with_pebs() {
    let (mut processor, _) = with_buffers(with_capabilities(capabilities(3)), [0, 0], [1000, 1000]);
    precise(&mut processor, 0, 5);
    processor.wrmsr(SELECT + 1, EN | USR | INT | 0xC0).unwrap();
    processor.wrmsr(0xC2, 0xFFFF_FFFF).unwrap();
    processor.run(Mode::User, &|_| 6);
    assert_eq!((processor.rdmsr(STATUS), processor.interrupt_pending()), (Ok(0b10), true));
}

#[test]
fn unmapped_memory_is_a_fault_and_changes_nothing_else() {
    let record = PEBS + 32;
    // An unmapped address, the faults of branch records and those of PEBS records.
    for (missing, of_branches, of_events) in [
        (AREA, 1, 0),
        (AREA + 0x18, 1, 0),
        (AREA + 0x20, 0, 1),
        (AREA + 0x38, 0, 1),
        (AREA + 0x40, 0, 1),
        (BTS, 1, 0),
        (BTS + 16, 1, 0),
        (record - 8, 0, 1),
        (PEBS, 0, 1),
        (BTS + 24, 0, 0),
        (record, 0, 0),
    ] {
        let (mut processor, words) = with_buffers(with_capabilities(capabilities(4)), [240, 24], [320, 32]);
        words.unmap(missing);
        processor.wrmsr(DEBUGCTL, TR | BTS_ON | BTINT).unwrap();
        processor.branch(Mode::User, branch(0));
        assert_eq!((processor.stored().faults, processor.stored().branches), (of_branches, 1 - of_branches));
        assert_eq!(processor.interrupt_pending(), of_branches == 0, "{missing:#x}");
        assert_eq!(words.index(0), BTS + 24 * (1 - of_branches), "{missing:#x}");
        processor.take_interrupt();
        precise(&mut processor, 0, 1);
        processor.run(Mode::User, &|_| 2);
        assert_eq!(processor.stored().faults, of_branches + of_events, "{missing:#x}");
        assert_eq!(processor.stored().records.len() as u64, 1 - of_events, "{missing:#x}");
        assert_eq!(words.index(0x20), PEBS + 32 * (1 - of_events), "{missing:#x}");
        assert_eq!(processor.interrupt_pending(), of_events == 0, "{missing:#x}");
        assert_eq!(processor.rdpmc(0), Ok(of_events), "{missing:#x}: reloaded with 0, or not");
    }
    // No memory is mapped.
    let mut processor = with_capabilities(capabilities(4));
    processor.wrmsr(DEBUGCTL, TR | BTS_ON).unwrap();
    processor.branch(Mode::User, branch(0));
    precise(&mut processor, 0, 1);
    processor.run(Mode::User, &|_| 1 + (1 << 48));
    assert_eq!(processor.stored(), &Stored { faults: 3, ..Stored::default() });
    assert_eq!(processor.interrupting_counters(), []);
}

#[test]
fn a_counter_interrupts_only_if_its_records_can_reach_the_threshold() {
    let (mut processor, words) = with_buffers(with_capabilities(capabilities(4)), [0, 0], [3 * 32, 4 * 32]);
    precise(&mut processor, 0, 7);
    assert_eq!(processor.interrupting_counters(), [], "the threshold lies behind the end");
    words.set(AREA + 0x38, PEBS);
    assert_eq!(processor.interrupting_counters()[0].events, 8, "the next record is already beyond it");
}

/// Returns a processor whose counter `number` counts branches with PEBS, interrupts at the first record, and overflows
/// after 10 events.
fn armed(signature: u32, number: u32) -> (Processor, Words) {
    let leaf = Leaf { perf_capabilities: Some(capabilities(4)), ..version(5) };
    let (mut processor, words) = with_buffers(intel(leaf, signature, ALL, DS), [0, 0], [320, 32]);
    words.set(AREA + 0x40 + 8 * u64::from(number), 10_u64.wrapping_neg());
    precise(&mut processor, number, 10);
    processor.wrmsr(SELECT + number, EN | USR | 0xC4).unwrap();
    (processor, words)
}

#[test]
fn an_overflow_arms_pebs_and_the_next_event_writes_the_record_and_reloads_the_counter() {
    for number in [0, 1] {
        let (mut processor, _) = armed(ICE_LAKE, number);
        assert_eq!(processor.interrupting_counters()[0].events, 11);
        processor.run(Mode::User, &|_| 10);
        assert_eq!((processor.stored().records.len(), processor.interrupt_pending()), (0, false));
        assert_eq!((processor.rdpmc(number), processor.rdmsr(STATUS)), (Ok(0), Ok(1 << number)));
        assert_eq!(processor.interrupting_counters()[0].events, 1);
        // Stopping and starting the counter, or acknowledging the status, does not disarm it.
        processor.wrmsr(0x38F, 0).unwrap();
        processor.wrmsr(STATUS_RESET, 1 << number).unwrap();
        processor.run(Mode::User, &|_| 10);
        processor.wrmsr(0x38F, 0xFF).unwrap();
        processor.run(Mode::User, &|_| 1);
        assert_eq!((processor.stored().records.len(), processor.interrupt_pending()), (1, true));
        assert_eq!(processor.rdpmc(number), Ok(10_u64.wrapping_neg() & 0xFFFF_FFFF_FFFF));
        assert_eq!(processor.rdmsr(STATUS), Ok(BUFFER_FULL));
    }
}

#[test]
fn disabling_pebs_on_a_counter_disarms_it() {
    let (mut processor, _) = armed(ICE_LAKE, 1);
    processor.run(Mode::User, &|_| 10);
    let enabled = processor.rdmsr(PEBS_ENABLE).unwrap();
    processor.wrmsr(PEBS_ENABLE, 0).unwrap();
    processor.run(Mode::User, &|_| 5);
    processor.wrmsr(PEBS_ENABLE, enabled).unwrap();
    processor.run(Mode::User, &|_| 5);
    assert_eq!((processor.stored().records.len(), processor.rdpmc(1)), (0, Ok(10)));
}

#[test]
fn branches_have_precise_distribution_on_counter_0_of_golden_cove() {
    for (number, events) in [(0, 10), (1, 11)] {
        let (mut processor, _) = armed(ALDER_LAKE, number);
        assert_eq!(processor.interrupting_counters()[0].events, events);
        processor.run(Mode::User, &|_| events - 1);
        assert_eq!(processor.stored().records.len(), 0, "{number}");
        processor.run(Mode::User, &|_| 1);
        assert_eq!((processor.stored().records.len(), processor.interrupt_pending()), (1, true), "{number}");
    }
}

proptest! {
    /// Counting events in one run and one by one gives the same result.
    #[test]
    fn counting_in_one_run_equals_counting_one_by_one(
        format in 0..6_u64,
        first in 1..50_u32,
        period in 1..60_u64,
        events in 0..2_000_u64,
        room in 0..12_u64,
        threshold in 1..12_u64,
    ) {
        let size = [144, 176, 192, 200, 32, 32][usize::try_from(format).unwrap()];
        let make = || {
            let (mut processor, words) = with_buffers(with_capabilities(capabilities(format)), [0, 0], [room * size, threshold * size]);
            words.set(AREA + 0x40, period.wrapping_neg());
            precise(&mut processor, 0, first);
            processor.set_place(IP, TIME);
            (processor, words)
        };
        let (mut bulk, bulk_words) = make();
        bulk.run(Mode::User, &|_| events);
        let (mut single, single_words) = make();
        for _ in 0..events {
            single.run(Mode::User, &|_| 1);
        }
        // An event after each overflow writes its record.
        let expected = events.checked_sub(u64::from(first) + 1).map_or(0, |more| 1 + more / (period + 1));
        prop_assert_eq!(bulk.stored().records.values().sum::<u64>(), expected.min(room));
        // Each event after the overflow whose record does not fit.
        let written = u64::from(first) + 1 + room.saturating_sub(1) * (period + 1);
        let full = if room == 0 { u64::from(first) } else { written + period };
        prop_assert_eq!(bulk.stored().records_refused, events.saturating_sub(full));
        prop_assert_eq!(bulk.stored(), single.stored());
        prop_assert_eq!(bulk_words.all(), single_words.all());
        prop_assert_eq!(bulk.rdpmc(0), single.rdpmc(0));
        prop_assert_eq!(bulk.rdmsr(STATUS), single.rdmsr(STATUS));
        prop_assert_eq!(entries(&bulk), entries(&single));
    }

    /// A single counter interrupts exactly at the predicted event; several counters do not interrupt before it.
    #[test]
    fn the_interrupting_event_is_predicted(
        counters in prop::collection::vec((1..300_u32, 1..300_u64, any::<bool>()), 1..4),
        room in 1..20_u64,
    ) {
        let (mut processor, words) = with_buffers(with_capabilities(capabilities(4)), [0, 0], [(room + 3) * 176, room * 176 - 100]);
        processor.wrmsr(DATA_CFG, 0b10).unwrap();
        for (number, (first, period, adaptive)) in (0..).zip(&counters) {
            precise(&mut processor, number, *first);
            words.set(AREA + 0x40 + 8 * u64::from(number), period.wrapping_neg());
            let adaptive = if *adaptive { ADAPTIVE } else { 0 };
            processor.wrmsr(SELECT + number, EN | USR | adaptive | 0xC0).unwrap();
        }
        let mut steps = 0;
        while let Some(events) = processor.interrupting_counters().iter().map(|it| it.events).min() {
            processor.run(Mode::User, &|_| events - 1);
            prop_assert!(!processor.interrupt_pending());
            processor.run(Mode::User, &|_| 1);
            steps += 1;
            if processor.interrupt_pending() {
                break;
            }
            prop_assert!(counters.len() > 1, "one alone interrupts at once");
            prop_assert!(steps < 10_000);
        }
        prop_assert!(processor.interrupt_pending());
        prop_assert_eq!(processor.stored().records_refused, 0);
    }
}
