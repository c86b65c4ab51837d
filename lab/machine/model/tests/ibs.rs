//! Instruction-Based Sampling of ops.

#![cfg(test)]

use model::{DataSource as From, ExecutedOp, GeneralProtection, MemoryAccess, OpKind, Processor};
use proptest::prelude::*;

const CONTROL: u32 = 0xC001_1033;
const RIP: u32 = 0xC001_1034;
const DATA: u32 = 0xC001_1035;
const DATA_2: u32 = 0xC001_1036;
const DATA_3: u32 = 0xC001_1037;
const LINEAR: u32 = 0xC001_1038;
const PHYSICAL: u32 = 0xC001_1039;
const ENTRY: u32 = 0xC001_103A;
const TARGET: u32 = 0xC001_103B;
const CONTROL_2: u32 = 0xC001_103E;

const L3_MISS_ONLY: u64 = 1 << 16;
const ENABLE: u64 = 1 << 17;
const VALID: u64 = 1 << 18;
const COUNTS_OPS: u64 = 1 << 19;
const LATENCY: u64 = 1 << 63;

/// A processor of each generation, and whether it has Zen 4's sources.
const GENERATIONS: [(&str, bool); 5] = [
    ("rome-7742", false),
    ("cezanne-5800h", false),
    ("milan-7713", false),
    ("zen4-7700x", true),
    ("zen5-9800x3d", true),
];

fn named(name: &str) -> Processor {
    with_flags(name, None)
}

/// Returns a processor whose leaf 8000001BH has other flags.
fn with_flags(name: &str, flags: Option<u32>) -> Processor {
    let dump = cpuid_dumps::find(name).unwrap().cpuid();
    Processor::new(Box::new(move |leaf, subleaf| match flags {
        Some(flags) if leaf == 0x8000_001B => [flags, 0, 0, 0],
        _ => dump.cpuid(leaf, subleaf),
    }))
}

const fn op(ip: u64, kind: OpKind) -> ExecutedOp {
    ExecutedOp { ip, cycles: 10, kind }
}

const fn access(source: From) -> MemoryAccess {
    MemoryAccess { address: 0x1_2345_6780, source, modified: false, latency: 300, tlb_miss: false, locked: false }
}

const NOTHING: ExecutedOp = op(0x1000, OpKind::Other);

/// Lets one op be sampled, with those around it that do nothing. Returns whether there is a sample.
fn sample(cpu: &mut Processor, sampled: ExecutedOp) -> bool {
    sample_with(cpu, ENABLE, sampled)
}

/// As [`sample`], with these bits of the control register and a period that ends with the op.
fn sample_with(cpu: &mut Processor, control: u64, sampled: ExecutedOp) -> bool {
    cpu.wrmsr(CONTROL, control | 1).unwrap();
    cpu.retire_ops(&[NOTHING, sampled, NOTHING, NOTHING]);
    cpu.rdmsr(CONTROL).unwrap() & VALID != 0
}

fn read(cpu: &mut Processor, registers: [u32; 3]) -> [u64; 3] {
    registers.map(|register| cpu.rdmsr(register).unwrap())
}

#[test]
fn the_leaf_and_its_bit_decide_and_a_hypervisor_shows_both_without_the_registers() {
    for (name, has_it) in [
        ("zen4-7700x", true),
        ("rembrandt-6800hs", true), // 3FD: ops without fetches
        ("deneb-940", true),
        ("raven-ridge-2500u", false), // 3FF, and ECX[10] of leaf 80000001H is clear
        ("k8-clawhammer", false),
        ("skylake-6600k", false),
    ] {
        assert_eq!(named(name).rdmsr(CONTROL).is_ok(), has_it, "{name}");
    }
    let dump = cpuid_dumps::find("zen4-7700x").unwrap().cpuid();
    let mut guest = Processor::new(Box::new(move |leaf, subleaf| {
        let [eax, ebx, ecx, edx] = dump.cpuid(leaf, subleaf);
        [eax, ebx, if leaf == 1 { ecx | 1 << 31 } else { ecx }, edx]
    }));
    assert_eq!(guest.rdmsr(CONTROL), Err(GeneralProtection));
    // Without the flags there is the sampling of family 10h, whose counter software does not read.
    let mut bare = with_flags("zen4-7700x", Some(0xBFE));
    assert_eq!(bare.wrmsr(CONTROL, COUNTS_OPS), Err(GeneralProtection));
    assert!(bare.wrmsr(CONTROL, ENABLE | 0xFFFF).is_ok() && bare.rdmsr(TARGET).is_err());
}

#[test]
fn a_bit_without_its_flag_faults_and_changes_nothing() {
    for (name, bits, is_writable) in [
        ("deneb-940", COUNTS_OPS, true),
        ("deneb-940", 1 << 20, false),
        ("bobcat-c50", 1 << 20, true),
        ("rome-7742", L3_MISS_ONLY, false),
        ("zen4-7700x", L3_MISS_ONLY, true),
        ("zen4-7700x", LATENCY, false),
        ("zen5-9800x3d", LATENCY | 15 << 59, true),
        ("zen5-9800x3d", 1 << 27, false),
    ] {
        let mut cpu = named(name);
        cpu.wrmsr(CONTROL, 0x123).unwrap();
        assert_eq!(cpu.wrmsr(CONTROL, bits).is_ok(), is_writable, "{name}, {bits:x}");
        assert_eq!(cpu.rdmsr(CONTROL), Ok(if is_writable { bits } else { 0x123 }), "{name}, {bits:x}");
    }
    for (flags, bits, is_writable) in [(0x81BFF, 0, false), (0x83BFF, 1, true), (0x83BFF, 2, false), (0x8BBFF, 7, true)]
    {
        let mut cpu = with_flags("zen5-9800x3d", Some(flags));
        assert_eq!(cpu.wrmsr(CONTROL_2, bits).is_ok(), is_writable, "{flags:x}, {bits}");
    }
}

/// The sources that Linux reads of the same registers (`g_data_src`, `g_zen4_data_src`).
#[test]
fn a_load_has_the_source_of_its_generation() {
    for (source, [early, late], [l1_miss, l2_miss]) in [
        (From::L1, [0, 0], [false, false]),
        (From::L2, [0, 0], [true, false]),
        (From::L3, [2, 1], [true, true]),
        (From::NearCache, [2, 2], [true, true]),
        (From::FarCache, [0x14, 0x15], [true, true]),
        (From::Dram, [3, 3], [true, true]),
        (From::FarDram, [0x13, 0x13], [true, true]),
        (From::Persistent, [3, 6], [true, true]),
        (From::Extension, [3, 0x40], [true, true]),
        (From::Device, [7, 7], [true, true]),
    ] {
        for (name, is_zen_4) in GENERATIONS {
            let mut cpu = named(name);
            assert!(sample(&mut cpu, op(0x40_0000, OpKind::Load(access(source)))), "{name}");
            let [data_2, data_3, linear] = read(&mut cpu, [DATA_2, DATA_3, LINEAR]);
            let number = if is_zen_4 { late } else { early };
            assert_eq!(data_2 & !(1 << 5), number, "{name}, {source:?}");
            let miss = |bit: u32| data_3 >> bit & 1 != 0;
            assert_eq!([miss(7), miss(20)], [l1_miss, l2_miss], "{name}, {source:?}");
            assert_eq!(data_3 >> 32 & 0xFFFF, if l1_miss { 300 } else { 0 }, "{name}, {source:?}");
            assert_eq!((data_3 & 3, data_3 >> 17 & 3, linear), (1, 3, 0x1_2345_6780), "{name}, {source:?}");
        }
    }
}

#[test]
fn a_modified_line_of_another_cache_shows_except_where_its_state_is_not_valid() {
    for (name, is_valid) in [
        ("rome-7742", true),
        ("milan-7713", false),
        ("cezanne-5800h", false), // model 50h
        ("zen4-7700x", true),
        ("zen5-9800x3d", true),
    ] {
        for modified in [false, true] {
            let load = MemoryAccess { modified, ..access(From::NearCache) };
            let mut cpu = named(name);
            sample(&mut cpu, op(0x40_0000, OpKind::Load(load)));
            let hit_modified = cpu.rdmsr(DATA_2).unwrap() >> 5 & 1 == 0;
            assert_eq!(hit_modified == modified, is_valid, "{name}, {modified}");
        }
    }
}

/// Erratum 1293.
#[test]
fn the_source_of_an_early_zen_3_is_wrong_without_a_miss_address_buffer() {
    let buffered = op(0x40_0000, OpKind::Load(access(From::Buffer)));
    let prefetch = op(0x40_0000, OpKind::Prefetch(access(From::L2)));
    for (name, is_wrong) in [("milan-7713", true), ("cezanne-5800h", false), ("zen4-7700x", false)] {
        for sampled in [buffered, prefetch] {
            let mut cpu = named(name);
            sample(&mut cpu, sampled);
            assert_eq!(cpu.rdmsr(DATA_3).unwrap() >> 20 & 1 != 0, is_wrong, "{name}, {sampled:?}");
        }
    }
}

#[test]
fn what_an_op_does_not_set_is_left_from_the_one_before() {
    let mut cpu = named("zen4-7700x");
    sample(&mut cpu, op(0x40_0000, OpKind::Load(access(From::Dram))));
    let before = read(&mut cpu, [LINEAR, PHYSICAL, RIP]);
    assert!(before.iter().all(|value| *value != 0), "{before:x?}");
    sample(&mut cpu, op(0x50_0000, OpKind::Microcode));
    assert_eq!(read(&mut cpu, [LINEAR, PHYSICAL, RIP]), before, "the address of the op too");
    let [data, data_2, data_3] = read(&mut cpu, [DATA, DATA_2, DATA_3]);
    assert_eq!((data >> 38 & 1, data_3), (1, 0), "the address of the op is not valid, and neither are the others");
    assert_ne!(data_2, 0, "a source without a load");
    let branch = OpKind::Branch { target: 0x60_0000, taken: true, mispredicted: true };
    sample(&mut cpu, op(0x50_0010, branch));
    let [data, target, rip] = read(&mut cpu, [DATA, TARGET, RIP]);
    assert_eq!((data >> 35 & 7, target, rip), (0b111, 0x60_0000, 0x50_0010));
    // A store has no latency, and nothing that its source could be.
    sample(&mut cpu, op(0x50_0020, OpKind::Store(access(From::Dram))));
    let data_3 = cpu.rdmsr(DATA_3).unwrap();
    assert_eq!((data_3 & 3, data_3 >> 32, data_3 >> 20 & 1), (2, 0, 1));
    let uncached = op(0x50_0030, OpKind::Load(access(From::Uncached)));
    sample(&mut cpu, uncached);
    assert_eq!(cpu.rdmsr(DATA_3).unwrap() >> 14 & 1, 1);
}

#[test]
fn the_unit_stands_still_until_the_control_is_written_without_the_valid_bit() {
    let mut cpu = named("zen5-9800x3d");
    assert!(sample(&mut cpu, op(0x40_0000, OpKind::Other)));
    let later = [op(0x50_0000, OpKind::Other); 100];
    cpu.retire_ops(&later);
    assert_eq!(cpu.rdmsr(RIP), Ok(0x40_0000));
    cpu.wrmsr(CONTROL, ENABLE | VALID | 1).unwrap();
    cpu.retire_ops(&later);
    assert_eq!(cpu.rdmsr(RIP), Ok(0x40_0000), "armed with the bit set");
    cpu.wrmsr(CONTROL, ENABLE | 1).unwrap();
    cpu.retire_ops(&later);
    assert_eq!(cpu.rdmsr(RIP), Ok(0x50_0000));
}

/// The op that is tagged when the unit is stopped gives a sample, or it does not.
#[test]
fn a_stop_can_be_too_late_for_the_op_that_is_tagged() {
    let mut cpu = named("zen4-7700x");
    let mut stop = || {
        cpu.wrmsr(CONTROL, ENABLE | 1).unwrap();
        cpu.retire_ops(&[NOTHING, NOTHING]);
        cpu.wrmsr(CONTROL, 0).unwrap();
        assert_eq!(cpu.rdmsr(CONTROL), Ok(0));
        cpu.retire_ops(&[NOTHING; 10]);
        cpu.rdmsr(CONTROL)
    };
    assert_eq!([stop(), stop(), stop()], [Ok(VALID), Ok(0), Ok(VALID)]);
    let mut cpu = with_flags("zen5-9800x3d", Some(0x83BFF));
    cpu.wrmsr(CONTROL_2, 1).unwrap();
    cpu.wrmsr(CONTROL, ENABLE | 1).unwrap();
    cpu.retire_ops(&[NOTHING; 100]);
    assert_eq!(cpu.rdmsr(CONTROL), Ok(ENABLE | 1), "disabled by the second control");
}

/// From Zen 5 on loads can be sampled by their latency, there only beside the filter for the L3 cache (erratum 1606).
#[test]
fn filters_drop_samples_and_the_latency_of_zen_5_needs_both() {
    let loads = [(From::L2, 500), (From::L3, 200), (From::Dram, 200), (From::Dram, 500)];
    for (control, passed) in [
        (ENABLE, [true; 4]),
        (ENABLE | L3_MISS_ONLY, [false, false, true, true]),
        (ENABLE | L3_MISS_ONLY | LATENCY | 1 << 59, [false, false, false, true]),
        (ENABLE | LATENCY | 1 << 59, [true; 4]),
    ] {
        let found = loads.map(|(source, latency)| {
            let load = MemoryAccess { latency, ..access(source) };
            sample_with(&mut named("zen5-9800x3d"), control, op(0x40_0000, OpKind::Load(load)))
        });
        assert_eq!(found, passed, "{control:x}");
    }
    let mut cpu = with_flags("zen5-9800x3d", Some(0x8BBFF));
    for (exclude, ip, is_there) in
        [(2, 0x40_0000, false), (2, 1 << 63, true), (4, 0x40_0000, true), (4, 1 << 63, false)]
    {
        cpu.wrmsr(CONTROL_2, exclude).unwrap();
        assert_eq!(sample(&mut cpu, op(ip, OpKind::Other)), is_there, "{exclude}, {ip:x}");
    }
}

#[test]
fn firmware_chooses_the_entry_and_software_reads_it() {
    let mut cpu = named("zen4-7700x");
    assert_eq!(cpu.rdmsr(ENTRY), Ok(0x100));
    assert_eq!(cpu.wrmsr(ENTRY, 0x101), Err(GeneralProtection));
    cpu.set_ibs_entry(0);
    assert_eq!(cpu.rdmsr(ENTRY), Ok(0));
}

proptest! {
    /// Samples are as far apart as the period and the random beginning of each say.
    #[test]
    fn a_period_begins_at_random_and_ends_as_written(
        sixteens in 16_u64..0x1_0000,
        above in 0_u64..4,
        counts_ops: bool,
        cycles in 1_u16..100,
    ) {
        let mut cpu = named("zen4-7700x");
        let control = ENABLE | sixteens | above << 20 | if counts_ops { COUNTS_OPS } else { 0 };
        let period = (sixteens * 16) | (above << 20);
        let each = if counts_ops { 1 } else { u64::from(cycles) };
        let op = ExecutedOp { ip: 0x1000, cycles, kind: OpKind::Other };
        let mut begin = 0;
        for _ in 0..3 {
            cpu.wrmsr(CONTROL, control | begin << 32).unwrap();
            // Two more retire before the sample.
            for _ in 1..(period - begin).div_ceil(each) + 2 {
                cpu.retire_ops(&[op]);
            }
            prop_assert_eq!(cpu.rdmsr(CONTROL).unwrap() & VALID, 0);
            cpu.retire_ops(&[op]);
            prop_assert_ne!(cpu.rdmsr(CONTROL).unwrap() & VALID, 0);
            // Software writes back what it has read, as Linux does.
            begin = cpu.rdmsr(CONTROL).unwrap() >> 32 & 0x7FF_FFFF;
            prop_assert!(begin < 0x80);
        }
    }
}
