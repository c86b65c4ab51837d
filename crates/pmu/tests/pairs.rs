//! AMD from family 17h on: event 003H can occur more than 15 times in a cycle, and takes an even counter and the
//! following odd one, which are merged.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use core::num::NonZeroU64;

use model::{Mode, Selected};
use pmu::placement::Wanted;
use pmu::source::RawEvent;
use pmu::state::{CounterSet, CounterState};
use pmu::{Hal, ProcessorIndex, Support};
use proptest::prelude::*;
use simulation::{SimMachine, boot};

use crate::reservation::reserve_all;

/// Families 17h to 1Ah and Hygon's, without and with PerfMonV2.
const ZENS: [&str; 5] = ["zen-1800x", "zen2-3600x", "zen3-5950x", "zen4-7700x", "zen5-9800x3d"];

fn raw(event: u16, umask: u8) -> RawEvent {
    RawEvent::new().with_event(event).with_umask(umask.into())
}

fn flops(hal: &Hal, interval: u32) -> CounterState {
    let state = hal.state_for(raw(3, 0xF).source(), 0, interval != 0).unwrap().with_interval(interval);
    state.with_owner(1).with_user(true).with_counted(true)
}

/// `cycles` cycles with 32 operations each.
fn work(cycles: u64) -> impl Fn(Selected) -> u64 {
    move |selected| if selected.event == 3 { 32 * cycles } else { cycles }
}

/// Returns the accesses of a piece of work: RDMSR, WRMSR, RDPMC.
fn cost(machine: &SimMachine, work: impl FnOnce()) -> (u64, u64, u64) {
    let before = machine.processor(0).model().accesses();
    work();
    let after = machine.processor(0).model().accesses();
    (after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc)
}

#[test]
fn flops_are_counted_whole_and_the_odd_counter_is_given_back() {
    for name in ZENS {
        let machine = SimMachine::named(name, 1);
        let hal = <Hal>::new(machine.processor(0), 1).unwrap();
        simulation::access_first(&hal, machine.processor(0), 0);
        assert!(hal.initialize(boot(machine.processor(0))));
        let version_2 = u64::from(name.starts_with("zen4") || name.starts_with("zen5"));
        let counter = hal.reserve(ProcessorIndex::BOOT, flops(&hal, 0)).unwrap();
        let set = CounterSet::NONE.with(counter);
        assert!(counter.is_multiple_of(2), "{name}");
        let free = || hal.cpu_counters(ProcessorIndex::BOOT).counters(CounterState::is_free);
        assert_eq!(free(), CounterSet::first(6).without(set.with(counter + 1)), "{name}");
        // Two writes more than another event: the odd counter's select, which merges it, and its value, which makes the
        // pair overflow with the even one.
        assert_eq!(cost(&machine, || hal.start(machine.current(0), set)), (0, 4 + version_2, 0), "{name}");
        machine.run(0, Mode::User, &work(1_000));
        machine.run(0, Mode::Kernel, &work(10));
        assert_eq!(hal.count(machine.current(0), counter), 32_000, "{name}");
        // One write more: the odd counter's select, or it would stay merged.
        let stop = cost(&machine, || {
            let _ = hal.stop(machine.current(0), set);
        });
        assert_eq!(stop, (0, 2, 1), "{name}");
        assert_eq!(hal.total(ProcessorIndex::BOOT, counter), 32_000, "{name}");
        hal.free(ProcessorIndex::BOOT, set);
        assert_eq!(free(), CounterSet::first(6), "{name}");

        // The counters are ordinary again.
        let plain = hal.state_for(raw(0xC0, 0).source(), 0, true).unwrap().with_interval(5_000).with_owner(1);
        let counters: Vec<u8> =
            (0..6).map(|_| hal.reserve(ProcessorIndex::BOOT, plain.with_user(true)).unwrap()).collect();
        hal.start(machine.current(0), counters.iter().copied().collect());
        machine.run(0, Mode::User, &|_| 5_000);
        assert!(machine.processor(0).model().interrupt_pending(), "{name}");
        assert_eq!(hal.check_overflow(machine.current(0)).0, CounterSet::first(6), "{name}");
    }
}

#[test]
fn every_interval_of_flops_interrupts_with_one_write_more_each() {
    const INTERVAL: u32 = 32_000;
    for name in ZENS {
        let machine = SimMachine::named(name, 1);
        let hal = <Hal>::new(machine.processor(0), 1).unwrap();
        simulation::access_first(&hal, machine.processor(0), 0);
        assert!(hal.initialize(boot(machine.processor(0))));
        hal.handler.set(NonZeroU64::new(1), 1).unwrap();
        let counter = hal.reserve(ProcessorIndex::BOOT, flops(&hal, INTERVAL)).unwrap();
        hal.start(machine.current(0), CounterSet::NONE.with(counter));
        let version_2 = name.starts_with("zen4") || name.starts_with("zen5");
        for round in 1..=5 {
            machine.run(0, Mode::User, &work(1_000));
            assert!(machine.processor(0).model().take_interrupt(), "{name}: round {round}");
            let mut served = CounterSet::NONE;
            let cost = cost(&machine, || served = hal.interrupt(machine.current(0)).0);
            // The odd counter is loaded with each reload of the even one: it has wrapped too.
            assert_eq!(
                (served, cost),
                (CounterSet::NONE.with(counter), if version_2 { (2, 5, 1) } else { (1, 4, 2) }),
                "{name}"
            );
        }
        assert_eq!(hal.count(machine.current(0), counter), 5 * u64::from(INTERVAL), "{name}");
    }
}

#[test]
fn without_the_extension_flops_are_refused_and_nobody_selects_the_merge() {
    for name in ZENS {
        let machine = SimMachine::named(name, 1);
        let hal = <Hal>::new(machine.processor(0), 1).unwrap();
        let support = |event| hal.source_information(raw(event, 0).source()).unwrap().support;
        assert_eq!((support(3), support(0xFFF)), (Support::Supported, Support::MergesCounters), "{name}");
        assert_eq!(hal.source_information(raw(3, 1).source()).unwrap().counters.bits(), 0b01_0101, "{name}");
    }
    // Family 17h with the four counters of the K7 alone, as hypervisors offer them.
    let leaves = |leaf, _| match leaf {
        0 => [1, 0x6874_7541, 0x444D_4163, 0x6974_6E65],
        0x8000_0000 => [0x8000_0001, 0, 0, 0],
        0x8000_0001 => [0x0080_0F11, 0, 0, 1 << 29],
        _ => [0; 4],
    };
    let machine = SimMachine::of([model::Processor::new(Box::new(leaves))]);
    let hal = <Hal>::new(machine.processor(0), 1).unwrap();
    let support = |event| hal.source_information(raw(event, 0).source()).unwrap().support;
    assert_eq!((support(3), support(0xFFF)), (Support::NeedsTwoCounters, Support::MergesCounters));
    // Earlier families count other things by these numbers.
    for name in ["bulldozer-fx8150", "k10-phenom"] {
        let Some(_) = cpuid_dumps::find(name) else { continue };
        let machine = SimMachine::named(name, 1);
        let hal = <Hal>::new(machine.processor(0), 1).unwrap();
        assert_eq!(hal.source_information(raw(3, 0).source()).unwrap().support, Support::Supported, "{name}");
    }
}

/// Returns the length of the longest prefix of events that get counters, by exhaustive search. An event is the mask of
/// its counters, and whether it takes the following counter too.
fn longest(events: &[(u32, bool)], taken: u32) -> usize {
    let Some(((mask, is_pair), rest)) = events.split_first() else { return 0 };
    let needs = |counter: u8| if *is_pair { 0b11 << counter } else { 1 << counter };
    let fits = |counter: &u8| {
        mask >> counter & 1 == 1
            && needs(*counter) & taken == 0
            && (!is_pair || counter.is_multiple_of(2) && *counter < 5)
    };
    (0..6).filter(fits).map(|counter| 1 + longest(rest, taken | needs(counter))).max().unwrap_or(0)
}

/// Places events and compares with an exhaustive search.
fn place(hal: &Hal, events: &[(u32, bool)], taken: u32) {
    let cpu_counters = hal.cpu_counters(ProcessorIndex::BOOT);
    for counter in CounterSet::from_bits((taken & 0x3F).into()).iter() {
        cpu_counters.set(counter, CounterState::FREE.with_owner(2));
    }
    let plain = hal.state_for(raw(0xC2, 0).source(), 0, false).unwrap().with_owner(1);
    let pair = hal.state_for(raw(3, 1).source(), 0, false).unwrap().with_owner(1);
    let wanted: Vec<_> = events
        .iter()
        .map(|(mask, is_pair)| Wanted {
            state: if *is_pair { pair } else { plain },
            within: CounterSet::from_bits((*mask).into()),
        })
        .collect();
    let mut assigned = vec![u8::MAX; wanted.len()];
    let outcome = reserve_all(hal, &wanted, &mut assigned);
    let most = longest(events, taken);
    assert_eq!(outcome, if most == events.len() { Ok(()) } else { Err(most) }, "{events:x?} {taken:#x}");
    if outcome.is_ok() {
        let mut used = taken & 0x3F;
        for (counter, (mask, is_pair)) in assigned.iter().zip(events) {
            let needed = if *is_pair { 0b11 << counter } else { 1 << counter };
            assert!(mask >> counter & 1 == 1 && used & needed == 0, "{events:x?} {taken:#x} {assigned:?}");
            assert!(!is_pair || counter.is_multiple_of(2), "{events:x?} {assigned:?}");
            used |= needed;
        }
        assert_eq!(cpu_counters.counters(|state| !state.is_free()).bits(), used, "{events:x?} {assigned:?}");
    } else {
        assert_eq!(cpu_counters.counters(|state| state.owner() == 1), CounterSet::NONE);
    }
    hal.free(ProcessorIndex::BOOT, CounterSet::first(CounterSet::MOST));
}

#[test]
fn every_combination_of_up_to_six_pairs_and_single_counters_is_placed_if_an_exhaustive_search_places_it() {
    let machine = SimMachine::named("zen4-7700x", 1);
    let hal = <Hal>::new(machine.processor(0), 1).unwrap();
    // Any counter; an odd one, and the last four alone; a pair anywhere, and not in the first counters.
    let kinds = [(!0, false), (0b10, false), (0b11_1100, false), (!0, true), (0b1_0100, true)];
    for length in 1..=6_u32 {
        for number in 0..5_usize.pow(length) {
            let events: Vec<_> = (0..length).map(|digit| kinds[number / 5_usize.pow(digit) % 5]).collect();
            place(&hal, &events, 0);
        }
    }
}

/// An event with any mask of counters, as a client narrows it, before and after any other one.
#[test]
fn every_two_narrowed_events_are_placed_if_an_exhaustive_search_places_them() {
    let machine = SimMachine::named("zen4-7700x", 1);
    let hal = <Hal>::new(machine.processor(0), 1).unwrap();
    let events = || (1..64).flat_map(|mask| [(mask, false), (mask, true)]);
    for first in events() {
        for second in events() {
            place(&hal, &[first, second], 0);
        }
    }
}

#[test]
fn any_pairs_and_single_counters_beside_any_others_are_placed_if_an_exhaustive_search_places_them() {
    let events = prop::collection::vec((0_u32..64, any::<bool>()), 1..8);
    let cases = prop::collection::vec((events, any::<u32>()), 20);
    let strategy = (prop::sample::select(ZENS.to_vec()), cases);
    let mut runner = super::placement::seed::runner("any_pairs_and_single_counters", file!());
    runner
        .run(&strategy, |(name, cases)| {
            let machine = SimMachine::named(name, 1);
            let hal = <Hal>::new(machine.processor(0), 1).unwrap();
            for (events, taken) in cases {
                place(&hal, &events, taken & taken >> 8 & 0x3F);
            }
            Ok(())
        })
        .unwrap();
}
