//! Instruction-Based Sampling of fetches.

#![cfg(test)]

use model::{ExecutedFetch, FetchSource as From, GeneralProtection, Processor};

const CONTROL: u32 = 0xC001_1030;
const LINEAR: u32 = 0xC001_1031;
const PHYSICAL: u32 = 0xC001_1032;
const EXTENDED: u32 = 0xC001_103C;

const ENABLE: u64 = 1 << 48;
const VALID: u64 = 1 << 49;
const L3_MISS_ONLY: u64 = 1 << 59;

/// Bits of a sample, by the numbers of the manual.
const COMPLETE: u32 = 50;
const CACHE_MISS: u32 = 51;
const PHYSICAL_VALID: u32 = 52;
const L1_TLB_MISS: u32 = 55;
const L2_TLB_MISS: u32 = 56;
const L2_MISS: u32 = 58;
const OP_CACHE_MISS: u32 = 60;
const L3_MISS: u32 = 61;

const CODE: u64 = 0x7FF6_0000_1000;

fn named(name: &str) -> Processor {
    let dump = cpuid_dumps::find(name).unwrap().cpuid();
    Processor::new(Box::new(move |leaf, subleaf| dump.cpuid(leaf, subleaf)))
}

const fn fetch(source: From) -> ExecutedFetch {
    ExecutedFetch { address: CODE, latency: 77, source, tlb_misses: 1 }
}

/// Lets so many fetches happen.
fn run(cpu: &mut Processor, fetches: u64) {
    cpu.run(model::Mode::User, &|_| fetches * 4);
}

/// Samples a fetch after a period of 32.
fn sample(cpu: &mut Processor, fetch: ExecutedFetch) -> u64 {
    cpu.set_fetches(vec![fetch]);
    cpu.wrmsr(CONTROL, 0).unwrap();
    cpu.wrmsr(CONTROL, ENABLE | 2).unwrap();
    run(cpu, 33);
    cpu.rdmsr(CONTROL).unwrap()
}

#[test]
fn the_registers_exist_where_the_leaf_says_it() {
    for (name, has_it, is_extended) in [
        ("deneb-940", true, false),
        ("rome-7742", true, true),
        ("zen5-9800x3d", true, true),
        ("rembrandt-6800hs", false, false), // 3FD: ops without fetches
        ("raven-ridge-2500u", false, false),
        ("skylake-6600k", false, false),
    ] {
        let mut cpu = named(name);
        for register in [CONTROL, LINEAR, PHYSICAL] {
            assert_eq!(cpu.rdmsr(register).is_ok(), has_it, "{name}");
        }
        assert_eq!((cpu.wrmsr(CONTROL, 2).is_ok(), cpu.rdmsr(EXTENDED).is_ok()), (has_it, is_extended), "{name}");
    }
    for (name, bits, is_writable) in
        [("rome-7742", L3_MISS_ONLY, false), ("zen4-7700x", L3_MISS_ONLY, true), ("zen4-7700x", 1 << 62, false)]
    {
        assert_eq!(named(name).wrmsr(CONTROL, bits).is_ok(), is_writable, "{name}");
    }
    assert_eq!(named("zen4-7700x").wrmsr(PHYSICAL, 0), Err(GeneralProtection));
}

#[test]
fn a_sample_says_what_its_generation_tells() {
    let bits = |numbers: &[u32]| numbers.iter().fold(0, |all, number| all | 1_u64 << number);
    for (source, misses) in [
        (From::OpCache, &[][..]),
        (From::L1, &[OP_CACHE_MISS]),
        (From::L2, &[OP_CACHE_MISS, CACHE_MISS]),
        (From::L3, &[OP_CACHE_MISS, CACHE_MISS, L2_MISS]),
        (From::Memory, &[OP_CACHE_MISS, CACHE_MISS, L2_MISS, L3_MISS]),
    ] {
        for (name, told) in [
            ("deneb-940", &[CACHE_MISS][..]),
            ("rome-7742", &[CACHE_MISS, L2_MISS]),
            ("zen4-7700x", &[CACHE_MISS, L2_MISS, OP_CACHE_MISS, L3_MISS]),
        ] {
            let mut cpu = named(name);
            let control = sample(&mut cpu, fetch(source));
            let expected = bits(misses) & bits(told) | bits(&[COMPLETE, PHYSICAL_VALID, L1_TLB_MISS]);
            assert_eq!(control >> 50 << 50, expected, "{name}, {source:?}");
            assert_eq!((control & VALID, control >> 32 & 0xFFFF, cpu.rdmsr(LINEAR)), (VALID, 77, Ok(CODE)), "{name}");
        }
        // Erratum 1238.
        let milan = sample(&mut named("milan-7713"), fetch(source));
        assert_eq!(milan >> CACHE_MISS & 1 == 1, !misses.contains(&CACHE_MISS), "{source:?}");
    }
    for (name, rest) in [("zen4-7700x", [L1_TLB_MISS, L2_TLB_MISS]), ("zen5-9800x3d", [L1_TLB_MISS, L2_MISS])] {
        let abandoned = ExecutedFetch { tlb_misses: 2, ..fetch(From::Abandoned) };
        assert_eq!(sample(&mut named(name), abandoned) >> 50 << 50, bits(&rest), "{name}");
    }
}

#[test]
fn the_unit_stands_still_from_a_sample_until_it_begins_again() {
    let mut cpu = named("zen4-7700x");
    let control = sample(&mut cpu, fetch(From::L1));
    cpu.set_fetches(vec![ExecutedFetch { address: CODE + 64, ..fetch(From::L2) }]);
    run(&mut cpu, 1_000);
    assert_eq!((cpu.rdmsr(CONTROL), cpu.rdmsr(LINEAR)), (Ok(control), Ok(CODE)));
    cpu.wrmsr(CONTROL, ENABLE | 2).unwrap();
    run(&mut cpu, 32);
    assert_eq!(cpu.rdmsr(CONTROL).unwrap() & VALID, 0);
    run(&mut cpu, 1);
    assert_eq!(cpu.rdmsr(LINEAR), Ok(CODE + 64));
}

/// Families 16h to 18h begin a period only when the unit was off.
#[test]
fn the_counter_of_zen_2_goes_on_unless_the_unit_was_off() {
    for (name, first) in [("rome-7742", None), ("rome-7742", Some(0)), ("zen4-7700x", None)] {
        let mut cpu = named(name);
        cpu.wrmsr(CONTROL, ENABLE | 2).unwrap();
        run(&mut cpu, 24);
        if let Some(value) = first {
            cpu.wrmsr(CONTROL, value).unwrap();
        }
        cpu.wrmsr(CONTROL, ENABLE | 2).unwrap();
        run(&mut cpu, 9);
        let is_early = name == "rome-7742" && first.is_none();
        assert_eq!(cpu.rdmsr(CONTROL).unwrap() & VALID != 0, is_early, "{name}, {first:?}");
    }
}

/// Erratum 420.
#[test]
fn a_unit_of_family_10h_has_to_lose_its_period_before_it_is_switched_off() {
    for (control, enable, valid) in [(CONTROL, ENABLE, VALID), (0xC001_1033, 1 << 17, 1 << 18)] {
        for (name, first, is_stuck) in
            [("deneb-940", None, true), ("deneb-940", Some(enable), false), ("rome-7742", None, false)]
        {
            let mut cpu = named(name);
            cpu.wrmsr(control, enable | 0x100).unwrap();
            if let Some(value) = first {
                cpu.wrmsr(control, value).unwrap();
            }
            cpu.wrmsr(control, 0).unwrap();
            cpu.wrmsr(control, 0).unwrap();
            assert_eq!(cpu.rdmsr(control).unwrap() & valid != 0, is_stuck, "{name}");
        }
    }
}

#[test]
fn every_eighth_address_of_milan_is_lost() {
    let mut cpu = named("milan-7713");
    let lost = (0..64).filter(|_| {
        sample(&mut cpu, fetch(From::L1));
        cpu.rdmsr(LINEAR) == Ok(0)
    });
    assert_eq!(lost.count(), 8);
}

#[test]
fn the_filter_drops_what_the_l3_cache_delivers_and_counts_on() {
    let mut cpu = named("zen4-7700x");
    cpu.set_fetches(vec![fetch(From::L3)]);
    cpu.wrmsr(CONTROL, ENABLE | L3_MISS_ONLY | 2).unwrap();
    run(&mut cpu, 1_000);
    assert_eq!(cpu.rdmsr(CONTROL).unwrap() & VALID, 0);
    cpu.set_fetches(vec![fetch(From::Memory)]);
    run(&mut cpu, 100);
    assert_eq!(cpu.rdmsr(CONTROL).unwrap() & VALID, VALID);
}

#[test]
fn a_stop_is_too_late_for_a_fetch_that_is_tagged_by_turns() {
    let mut cpu = named("zen4-7700x");
    let valid = [false; 4].map(|_| {
        cpu.wrmsr(CONTROL, ENABLE | 2).unwrap();
        run(&mut cpu, 32);
        cpu.wrmsr(CONTROL, 0).unwrap();
        run(&mut cpu, 10);
        cpu.rdmsr(CONTROL).unwrap() & (VALID | ENABLE) == VALID
    });
    assert_eq!(valid, [true, false, true, false]);
}
