//! Properties of random programs: registers and ledger always agree.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed law is a failed test")]

use super::common::{EN, INT, OS, UNITS, USR, Unit, entries};
use model::{CounterId, Mode, Processor};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A step of a program on the general counters.
#[derive(Debug, Clone)]
enum Step {
    /// Loads the counter with minus this number.
    Load(u32, u32),
    /// Enable, INT, USR, OS and event.
    Select(u32, [bool; 4], u8),
    Control(u64),
    Clear(u64),
    Run(bool, u32),
    TakeInterrupt,
    SetLvt(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..15u32, 1..200u32).prop_map(|(i, distance)| Step::Load(i, distance)),
        (0..15u32, any::<[bool; 4]>(), 1..4u8).prop_map(|(i, bits, event)| Step::Select(i, bits, event)),
        any::<u64>().prop_map(Step::Control),
        any::<u64>().prop_map(Step::Clear),
        (any::<bool>(), 0..300u32).prop_map(|(user, count)| Step::Run(user, count)),
        Just(Step::TakeInterrupt),
        any::<bool>().prop_map(Step::SetLvt),
    ];
    prop::collection::vec(step, 1..60)
}

/// Returns the occurrences of `event` in a run of `count`. The number differs between events, so a mixed-up event is
/// noticed.
fn events(event: u16, count: u32) -> u64 {
    u64::from(event) * u64::from(count)
}

fn step(unit: &Unit, processor: &mut Processor, step: &Step) {
    match *step {
        Step::Load(i, distance) => unit.load_negative(processor, i % unit.counters, distance),
        Step::Select(i, bits, event) => {
            let flags = [EN, INT, USR, OS].into_iter().zip(bits).filter(|(_, set)| *set).map(|(flag, _)| flag);
            unit.set_select(processor, i % unit.counters, flags.sum::<u64>() | u64::from(event));
        }
        Step::Control(value) => {
            if let Some(global) = unit.global {
                processor.wrmsr(global.control, value & unit.all()).unwrap();
            }
        }
        Step::Clear(value) => {
            if let Some(global) = unit.global {
                processor.wrmsr(global.clear, value & unit.all()).unwrap();
            }
        }
        Step::Run(user, count) => {
            let mode = if user { Mode::User } else { Mode::Kernel };
            processor.run(mode, &|selected| events(selected.event, count));
        }
        Step::TakeInterrupt => {
            processor.take_interrupt();
        }
        Step::SetLvt(masked) => processor.set_lvt(if masked { 0x1_00FE } else { 0xFE }),
    }
}

/// Returns the events and overflows of each general counter in the ledger.
fn ledger(processor: &Processor) -> BTreeMap<u32, (u64, u64)> {
    let mut sums = BTreeMap::new();
    for entry in entries(processor) {
        let CounterId::General(number) = entry.counter else { continue };
        let sum: &mut (u64, u64) = sums.entry(u32::from(number)).or_default();
        sum.0 += entry.counted;
        sum.1 += entry.overflows;
    }
    sums
}

proptest! {
    /// The value of a counter is its loaded value plus the events in the ledger since then, modulo its width. The
    /// number of wraps matches the ledger.
    #[test]
    fn counter_equals_its_load_plus_the_ledger(program in steps(), unit in 0..UNITS.len()) {
        let unit = &UNITS[unit];
        let mut processor = (unit.make)();
        // The loaded value of each counter, and its events and overflows in the ledger at that time.
        let mut loads = BTreeMap::new();
        for next in &program {
            step(unit, &mut processor, next);
            if let Step::Load(i, _) = *next {
                let i = i % unit.counters;
                let given = ledger(&processor).get(&i).copied().unwrap_or_default();
                loads.insert(i, (unit.read(&mut processor, i), given));
            }
        }
        let given = ledger(&processor);
        for i in 0..unit.counters {
            let (start, before) = loads.get(&i).copied().unwrap_or_default();
            let now = given.get(&i).copied().unwrap_or_default();
            let total = u128::from(start) + u128::from(now.0 - before.0);
            prop_assert_eq!(u128::from(unit.read(&mut processor, i)), total % (1 << unit.width));
            prop_assert_eq!(u128::from(now.1 - before.1), total >> unit.width);
        }
    }

    /// The interrupts in the ledger are those taken plus the pending one.
    #[test]
    fn every_raised_interrupt_is_taken_or_pending(program in steps(), unit in 0..UNITS.len()) {
        let unit = &UNITS[unit];
        let mut processor = (unit.make)();
        let mut taken = 0;
        for next in &program {
            if matches!(next, Step::TakeInterrupt) {
                taken += u64::from(processor.take_interrupt());
            } else {
                step(unit, &mut processor, next);
            }
            let raised: u64 = entries(&processor).iter().map(|entry| entry.interrupts).sum();
            prop_assert_eq!(raised, taken + u64::from(processor.interrupt_pending()));
        }
    }

    /// Running changes only the enabled counters, and each by exactly its events.
    #[test]
    fn only_enabled_counters_count(program in steps(), unit in 0..UNITS.len(), user: bool, count in 1..300u32) {
        let unit = &UNITS[unit];
        let mut processor = (unit.make)();
        for next in &program {
            step(unit, &mut processor, next);
        }
        let before: Vec<u64> = (0..unit.counters).map(|i| unit.read(&mut processor, i)).collect();
        let enabled: BTreeMap<_, _> = processor.enabled_counters().into_iter().collect();
        step(unit, &mut processor, &Step::Run(user, count));
        for (i, before) in (0u8..).zip(before) {
            let select = processor.rdmsr(unit.select(u32::from(i))).unwrap();
            let expected = match enabled.get(&CounterId::General(i)) {
                Some(selected) if select & if user { USR } else { OS } != 0 => events(selected.event, count),
                _ => 0,
            };
            prop_assert_eq!(unit.read(&mut processor, u32::from(i)), before.wrapping_add(expected) & unit.mask());
        }
    }

    /// The status holds the counters that overflowed since their bits were last cleared.
    #[test]
    fn status_equals_the_overflows_not_yet_cleared(program in steps(), unit in 0..UNITS.len()) {
        let unit = &UNITS[unit];
        let Some(global) = unit.global else { return Ok(()) };
        let mut processor = (unit.make)();
        let mut expected = 0;
        for next in &program {
            let before = ledger(&processor);
            step(unit, &mut processor, next);
            for (number, (_, overflows)) in ledger(&processor) {
                if overflows > before.get(&number).copied().unwrap_or_default().1 {
                    expected |= 1 << number;
                }
            }
            if let Step::Clear(value) = next {
                expected &= !value;
            }
            prop_assert_eq!(processor.rdmsr(global.status), Ok(expected));
        }
    }

    /// The reported number of events overflows the counter; one event fewer does not.
    #[test]
    fn until_overflow_is_exact(unit in 0..UNITS.len(), distance in 2..0x7FFF_FFFFu32) {
        let unit = &UNITS[unit];
        let mut processor = (unit.make)();
        unit.set_select(&mut processor, 0, EN | INT | OS | 1);
        unit.load_negative(&mut processor, 0, distance);
        let left = processor.until_overflow(CounterId::General(0)).unwrap();
        processor.run(Mode::Kernel, &|_| left - 1);
        prop_assert!(!processor.interrupt_pending());
        prop_assert_eq!(processor.until_overflow(CounterId::General(0)), Some(1));
        processor.run(Mode::Kernel, &|_| 1);
        prop_assert!(processor.interrupt_pending());
        prop_assert_eq!(unit.read(&mut processor, 0), 0);
    }

    /// The interrupting counters are those enabled with INT, each with its modes and remaining events.
    #[test]
    fn interrupting_counters_lists_the_counters_that_will_interrupt(
        unit in 0..UNITS.len(),
        flags in prop::collection::vec((any::<[bool; 4]>(), 1..200u32), 1..4),
    ) {
        let unit = &UNITS[unit];
        let mut processor = (unit.make)();
        let mut expected = Vec::new();
        for (i, (bits @ [enabled, interrupt, user, kernel], distance)) in (0..unit.counters).zip(&flags) {
            unit.load_negative(&mut processor, i, *distance);
            step(unit, &mut processor, &Step::Select(i, *bits, 1));
            if *enabled && *interrupt && (*user || *kernel) {
                expected.push((*user, *kernel, u64::from(*distance)));
            }
        }
        let found = processor.interrupting_counters();
        let found: Vec<_> = found.iter().map(|counter| (counter.user, counter.kernel, counter.events)).collect();
        prop_assert_eq!(found, expected);
    }

    /// A refused write changes no register.
    #[test]
    fn refused_write_changes_nothing(
        unit in 0..UNITS.len(),
        writes in prop::collection::vec((0..64usize, any::<u64>(), 0..64u32), 1..50),
    ) {
        let unit = &UNITS[unit];
        let mut processor = (unit.make)();
        let globals = unit.global.map_or(vec![], |global| (global.status..global.status + 4).collect());
        let names = (0..unit.counters).flat_map(|i| [unit.select(i), unit.counter(i)]);
        let registers: Vec<u32> = names.chain(globals).chain([0x1B, 0x345, 0x38D, 0x309, 0x834]).collect();
        for (register, value, shift) in writes {
            let before: Vec<_> = registers.iter().map(|&register| processor.rdmsr(register)).collect();
            if processor.wrmsr(registers[register % registers.len()], value >> shift).is_err() {
                let after: Vec<_> = registers.iter().map(|&register| processor.rdmsr(register)).collect();
                prop_assert_eq!(before, after);
            }
        }
    }
}
