//! NetBurst: the steps of the HAL PMU design, section 3.2, in order, and its peculiarities.

use pmu::state::CounterSet;
use pmu::{Kind, Source};

use super::bench::{Access, Bench, LONG, SHORT, of_interface, processor_of};
use simulation::boot;

/// Each event by the manual: source, first ESCR of the unit, ESCR select in the CCCR, event select, event mask.
const EVENTS: [(u64, u32, u64, u64, u64); 6] = [
    (0x02, 0x3B8, 4, 0x02, 0x0001),
    (0x06, 0x3CC, 5, 0x06, 0x000F),
    (0x0A, 0x3A0, 7, 0x0C, 0x0700),
    (0x0B, 0x3B8, 4, 0x03, 0x0001),
    (0x13, 0x3A2, 6, 0x13, 0x0001),
    (0x19, 0x3A2, 6, 0x13, 0x0001),
];

const ENABLE: u64 = 1 << 12;
const ANY_THREAD: u64 = 3 << 16;
const OVF_PMI_T0: u64 = 1 << 26;
const OVF: u64 = 1 << 31;
/// T0_OS and T0_USR.
const BOTH_MODES: u64 = 0xC;

/// The counters that use the second ESCR of a unit.
const SECOND: [u8; 9] = [2, 3, 6, 7, 10, 11, 14, 15, 17];

fn each_event_on_each_processor(law: impl Fn(&Bench, (u64, u32, u64, u64, u64))) {
    for identity in of_interface("NetBurst") {
        for event in EVENTS {
            law(&Bench::new(processor_of(identity)).in_both_modes(), event);
        }
    }
}

#[test]
fn enabling_sets_up_the_escr_then_the_counter_twice_then_the_cccr_which_starts_it() {
    each_event_on_each_processor(|bench, (source, escr, select, event, mask)| {
        for interval in [None, Some(SHORT)] {
            // 1. A counter and an ESCR that it can use.
            let counter = bench.reserve(source, interval);
            let number = bench.number(counter);
            let escr = escr + u32::from(SECOND.contains(&number));
            bench.take_log();
            bench.start([counter]);
            let initial = interval.map_or(0, |interval| (1 << 40) - u64::from(interval));
            let interrupt = if interval.is_some() { OVF_PMI_T0 } else { 0 };
            let load = Access::Write(0x300 + u32::from(number), initial);
            let wanted = [
                // 2. The ESCR is set up for the event.
                Access::Write(escr, event << 25 | mask << 9 | BOTH_MODES),
                load,
                load,
                // 3. The CCCR selects the ESCR and the filters; 4. it enables the interrupt; 5. the counter starts.
                Access::Write(0x360 + u32::from(number), ENABLE | ANY_THREAD | select << 13 | interrupt),
            ];
            assert_eq!(bench.take_log(), wanted, "{source:#x}, {interval:?}");
            bench.finish();
        }
    });
}

#[test]
fn disabling_clears_enable_and_ovf_pmi_of_the_events_own_cccr_and_nothing_else() {
    each_event_on_each_processor(|bench, (source, _, select, ..)| {
        let counter = bench.started(source, Some(SHORT));
        let number = u32::from(bench.number(counter));
        for overflowed in [false, true] {
            if overflowed {
                bench.start([counter]);
                bench.run(u64::from(SHORT));
                assert_eq!(bench.msr(0x360 + number) & OVF, OVF, "{source:#x}");
            }
            bench.take_log();
            let told = bench.hal.stop(boot(bench), CounterSet::NONE.with(counter)).0;
            assert_eq!(told.has(counter), overflowed, "{source:#x}");
            let wanted = [Access::Write(0x360 + number, ANY_THREAD | select << 13), Access::Counter(number)];
            assert_eq!(bench.take_log(), wanted, "{source:#x}");
        }
    });
}

#[test]
fn checking_for_overflow_examines_ovf_of_each_cccr_that_interrupts() {
    for identity in of_interface("NetBurst") {
        let bench = Bench::new(processor_of(identity));
        let due = bench.started(2, Some(SHORT));
        let later = bench.started(2, Some(LONG));
        bench.started(6, None);
        bench.run(u64::from(SHORT));
        bench.take_log();
        assert_eq!(bench.hal.check_overflow(boot(&bench)).0, CounterSet::NONE.with(due), "{}", identity.name);
        let [due, later] = [due, later].map(|counter| u32::from(bench.number(counter)));
        // With a clear flag the counter is read as well.
        let wanted = [Access::Read(0x360 + due), Access::Read(0x360 + later), Access::Counter(later)];
        assert_eq!(bench.take_log(), wanted, "{}", identity.name);
    }
}

#[test]
fn serving_clears_ovf_then_loads_the_counter_twice_and_raises_nothing_again() {
    each_event_on_each_processor(|bench, (source, _, select, ..)| {
        let counter = bench.started(source, Some(SHORT));
        let number = u32::from(bench.number(counter));
        for _ in 0..3 {
            bench.run(u64::from(SHORT) + 7);
            assert!(bench.deliver(), "{source:#x}");
            bench.take_log();
            assert_eq!(bench.serve(), [counter], "{source:#x}");
            let load = Access::Write(0x300 + number, (1 << 40) - u64::from(SHORT));
            let cccr = 0x360 + number;
            let started = Access::Write(cccr, ENABLE | ANY_THREAD | select << 13 | OVF_PMI_T0);
            let stopped = Access::Write(cccr, ANY_THREAD | select << 13 | OVF_PMI_T0);
            // The counter holds the events since its overflow, and stands still until it is loaded.
            let read = [Access::Read(cccr), stopped, Access::Counter(number)];
            let wanted = [&read[..], &[load, load, Access::Read(cccr), started]].concat();
            assert_eq!(bench.take_log(), wanted, "{source:#x}");
            assert!(!bench.model().interrupt_pending(), "{source:#x}");
            let id = bench.id(counter);
            assert_eq!(bench.model().until_overflow(id), Some(SHORT.into()), "{source:#x}");
        }
    });
}

#[test]
fn an_overflow_that_left_no_flag_is_found_by_the_counter() {
    for identity in of_interface("NetBurst") {
        let bench = Bench::new(processor_of(identity));
        let counter = bench.started(2, Some(SHORT));
        bench.run(u64::from(SHORT) + 3);
        assert!(bench.deliver(), "{}", identity.name);
        let cccr = bench.select(counter);
        bench.set_msr(cccr, bench.msr(cccr) & !OVF);
        assert_eq!(bench.hal.check_overflow(boot(&bench)).number(), 1, "{}", identity.name);
        assert_eq!(bench.serve(), [counter], "{}", identity.name);
        assert!(bench.serve().is_empty(), "{}: once", identity.name);
    }
}

#[test]
fn every_event_counts_on_each_counter_that_it_can_have() {
    for identity in of_interface("NetBurst") {
        let mut used = std::collections::BTreeSet::new();
        for (source, ..) in EVENTS {
            let bench = Bench::new(processor_of(identity));
            let row = bench.hal.source_information(Source(source)).unwrap();
            let counters: Vec<u8> = row.counters.iter().collect();
            let reserved: Vec<u8> = counters.iter().map(|_| bench.reserve(source, None)).collect();
            assert_eq!(bench.try_reserve(source, None), None, "{} {source:#x}: no other", identity.name);
            assert_eq!(reserved.iter().copied().collect::<CounterSet>(), row.counters, "{}", identity.name);
            bench.start(reserved.iter().copied());
            bench.run(1_000);
            assert_eq!(bench.finish(), vec![1_000; counters.len()], "{} {source:#x}", identity.name);
            used.extend(reserved);
        }
        let usable = Bench::new(processor_of(identity)).usable();
        assert_eq!(used, usable.iter().collect(), "{}: and not counter 1", identity.name);
    }
}

#[test]
fn release_leaves_every_cccr_and_escr_of_its_own_clear() {
    for identity in of_interface("NetBurst") {
        let bench = Bench::idle(processor_of(identity));
        bench.whole_life();
        let registers = (0x360..=0x371).chain([0x3A0, 0x3A1, 0x3A2, 0x3A3, 0x3B8, 0x3B9, 0x3CC, 0x3CD]);
        for register in registers {
            assert_eq!(bench.msr(register), 0, "{}: {register:#x}", identity.name);
        }
    }
}

#[test]
fn where_misc_enable_says_that_nothing_can_be_monitored_no_other_register_is_touched() {
    let identity = cpuid_dumps::find("netburst-cedarmill").unwrap();
    let bench = Bench::idle(processor_of(identity));
    assert_eq!(bench.hal.boot.selection.interface, Kind::NetBurst);
    let nothing = Bench::idle(model::Processor::new(Box::new(|_, _| [0; 4])).with_absent_msrs_ignored());
    assert!(!bench.hal.initialize(boot(&nothing)));
    bench.hal.release(boot(&nothing));
    assert_eq!(bench.hal.in_use_elsewhere(boot(&nothing)), None);
    let others = nothing.take_log().into_iter().filter(|access| *access != Access::Read(0x1A0));
    assert_eq!(others.collect::<Vec<_>>(), []);
}
