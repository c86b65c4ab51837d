//! Placement of events on counters: only where they count, and on some counter whenever there is one.

#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod counting;
mod facts;
mod narrowing;
pub mod seed;

use std::collections::BTreeMap;

use facts::{BULLDOZER, Fact, Generation, INTEL, P6};
use pmu::constraints::tables;
use pmu::debug_store::examine;
use pmu::interface::emon::Microarchitecture;
use pmu::placement::Wanted;
use pmu::source::RawEvent;
use pmu::state::{CounterSet, CounterState};
use pmu::{Hal, Kind, ProcessorIndex, Source};
use proptest::prelude::*;
use simulation::SimMachine;

use crate::reservation::reserve_all;

/// Returns the counters that count and those that record each listed encoding. It counts where all rows count that
/// select nothing but event and unit mask, or all rows if there is no such one; it is recorded where one of the former
/// is.
fn encodings(generation: &Generation) -> BTreeMap<(u16, u8), (u32, u32)> {
    let mut rows: BTreeMap<(u16, Option<u8>), Vec<Fact>> = BTreeMap::new();
    for fact in generation.facts() {
        rows.entry((fact.event, fact.umask)).or_default().push(fact);
    }
    let mut encodings = BTreeMap::new();
    for ((event, umask), facts) in &rows {
        let plain: Vec<&Fact> = facts.iter().filter(|fact| fact.is_plain).collect();
        let deciding = if plain.is_empty() { facts.iter().collect() } else { plain.clone() };
        let counters = deciding.iter().fold(!0, |common, fact| common & fact.counters);
        let precise = plain.iter().fold(0, |any, fact| any | fact.precise);
        let umasks = umask.map_or(0..=u8::MAX, |umask| umask..=umask);
        for number in umasks.filter(|number| umask.is_some() || !rows.contains_key(&(*event, Some(*number)))) {
            encodings.insert((*event, number), (counters, precise));
        }
    }
    encodings
}

fn raw(event: u16, umask: u8) -> RawEvent {
    RawEvent::new().with_event(event).with_umask(umask.into())
}

/// Reserves a counter while `taken` are in use, and frees it.
fn placed(hal: &Hal, state: CounterState, taken: CounterSet) -> Option<u8> {
    let cpu_counters = hal.cpu_counters(ProcessorIndex::BOOT);
    for counter in taken.iter() {
        cpu_counters.set(counter, CounterState::FREE.with_owner(2));
    }
    let counter = hal.reserve(ProcessorIndex::BOOT, state);
    hal.free(ProcessorIndex::BOOT, CounterSet::first(CounterSet::MOST));
    counter
}

#[test]
fn an_event_is_placed_on_a_counter_if_and_only_if_the_facts_list_the_counter() {
    let mut wrong = Vec::new();
    for generation in INTEL.iter().chain([&BULLDOZER, &P6]) {
        let machine = generation.machine();
        let hal = Hal::new(machine.processor(0), 1).unwrap();
        let all = CounterSet::first(generation.general);
        for ((event, umask), (counters, _)) in encodings(generation) {
            hal.events.keep_raw(|_| false);
            let Ok(state) = hal.state_for(raw(event, umask).source(), 0, false) else {
                if counters & all.bits() != 0 {
                    wrong.push(format!("{}: {event:#x}/{umask:#x} is refused", generation.name));
                }
                continue;
            };
            for counter in all.iter() {
                let others = CounterSet::first(CounterSet::MOST).without(CounterSet::NONE.with(counter));
                let found = placed(&hal, state.with_owner(1), others);
                if found.is_some() != (counters >> counter & 1 == 1) {
                    wrong.push(format!("{}: {event:#x}/{umask:#x} on counter {counter}: {found:?}", generation.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} placements, the first: {:#?}", wrong.len(), &wrong[..wrong.len().min(8)]);
}

/// Every row that selects more than event and unit mask is placed by the whole encoding, on exactly its counters.
#[test]
fn an_event_with_filters_is_placed_on_the_counters_of_its_own_row() {
    let (mut wrong, mut rows) = (Vec::new(), 0);
    for generation in INTEL.iter().chain([&BULLDOZER, &P6]) {
        let machine = generation.machine();
        let hal = Hal::new(machine.processor(0), 1).unwrap();
        let all = CounterSet::first(generation.general);
        // Version 5 of these machines has AnyThread, which needs a whole event.
        let is_filtered = |fact: &Fact| !fact.is_plain && !fact.filters.3 && fact.counters != 0;
        for fact in generation.facts().into_iter().filter(is_filtered) {
            let (Some(umask), (cmask, inv, edge, _)) = (fact.umask, fact.filters) else { continue };
            let event = raw(fact.event, umask).with_cmask(cmask).with_inv(inv).with_edge(edge);
            hal.events.keep_raw(|_| false);
            rows += 1;
            let state = hal.state_for(event.source(), 0, false).unwrap();
            let is_possible = |counter: &u8| {
                let others = CounterSet::first(CounterSet::MOST).without(CounterSet::NONE.with(*counter));
                placed(&hal, state.with_owner(1), others).is_some()
            };
            let found = all.iter().filter(is_possible).fold(CounterSet::NONE, CounterSet::with).bits();
            if found != fact.counters & all.bits() {
                wrong.push((generation.name, fact.event, umask, fact.filters, found, fact.counters));
            }
        }
    }
    assert_eq!((wrong, rows), (vec![], 558));
}

/// A state to place, and the counters that can take it, by the facts.
#[derive(Debug, Clone, Copy)]
struct Choice {
    state: CounterState,
    counters: u32,
    /// What the client allows of them.
    within: CounterSet,
}

impl Choice {
    fn new(state: CounterState, counters: u32) -> Self {
        Self { state, counters, within: CounterSet::first(CounterSet::MOST) }
    }

    /// Returns the choice as a client narrows it.
    fn narrowed(self, mask: u32) -> Self {
        Self { counters: self.counters & mask, within: CounterSet::from_bits(mask.into()), ..self }
    }
}

/// A machine of a generation on which events are placed.
struct Bench {
    /// Holds the processor.
    _machine: SimMachine,
    hal: Hal,
    choices: Vec<Choice>,
}

/// Sources of the interface's table that fixed counters 0, 1 and 2 count, with event and unit mask.
const FIXED: [(u64, u16, u8, u32); 3] = [(0x02, 0xC0, 0x00, 0), (0x13, 0x3C, 0x00, 1), (0x1B, 0x3C, 0x01, 2)];

impl Bench {
    /// Returns the machine with a choice for each different set of counters, and `more` events of the facts.
    fn new(generation: &Generation, more: &[usize]) -> Self {
        let machine = generation.machine();
        let hal = Hal::new(machine.processor(0), 1).unwrap();
        let all = CounterSet::first(generation.general).bits();
        let listed = encodings(generation);
        let mut found: BTreeMap<u32, CounterState> = BTreeMap::new();
        let mut choices = Vec::new();
        let is_emon = hal.interface().kind() == Kind::Emon;
        if is_emon && generation.name != "core" {
            for (source, event, umask, fixed) in FIXED {
                let general = listed.get(&(event, umask)).map_or(!0, |(counters, _)| *counters) & all;
                let general = if fixed == 2 { 0 } else { general };
                let state = hal.state_for(Source(source), 0, false).unwrap();
                found.insert(general | 1 << fixed << generation.general, state);
            }
        }
        let recorders = precise_counters(&machine, &hal);
        for (index, ((event, umask), (counters, precise))) in listed.iter().enumerate() {
            let (raw, counters) = (raw(*event, *umask), counters & all);
            let precise = precise & recorders & all;
            let is_new = !found.contains_key(&counters) || precise != 0 && !found.contains_key(&precise);
            let is_more = more.iter().any(|more| more % listed.len() == index);
            if counters == 0 || !(is_new || is_more) {
                continue;
            }
            let Ok(state) = hal.state_for(raw.source(), 0, false) else { continue };
            found.entry(counters).or_insert(state);
            let sampled = hal.state_for(raw.source(), 0, true).unwrap().with_precise(true);
            if precise != 0 {
                found.entry(precise).or_insert(sampled);
            }
            if is_more {
                choices.push(Choice::new(state, counters));
            }
        }
        choices.extend(found.into_iter().map(|(counters, state)| Choice::new(state, counters)));
        for choice in &mut choices {
            choice.state = choice.state.with_owner(1);
        }
        Self { _machine: machine, hal, choices }
    }

    /// Places events and compares with an exhaustive search. Returns whether they are placed.
    fn place(&self, wanted: &[Choice], taken: u32, what: &str) -> bool {
        let cpu_counters = self.hal.cpu_counters(ProcessorIndex::BOOT);
        for counter in CounterSet::from_bits(taken.into()).iter() {
            cpu_counters.set(counter, CounterState::FREE.with_owner(2));
        }
        let masks: Vec<u32> = wanted.iter().map(|choice| choice.counters).collect();
        let states: Vec<_> =
            wanted.iter().map(|choice| Wanted { state: choice.state, within: choice.within }).collect();
        let mut assigned = vec![u8::MAX; wanted.len()];
        let outcome = reserve_all(&self.hal, &states, &mut assigned);
        let most = longest(&masks, taken);
        assert_eq!(outcome, if most == masks.len() { Ok(()) } else { Err(most) }, "{what}: {masks:x?} {taken:#x}");
        if outcome.is_ok() {
            let mut used = taken;
            for (counter, mask) in assigned.iter().zip(&masks) {
                assert!(mask & !used & 1 << counter != 0, "{what}: {masks:x?} {taken:#x} {assigned:?}");
                used |= 1 << counter;
            }
        }
        self.hal.free(ProcessorIndex::BOOT, CounterSet::first(CounterSet::MOST));
        outcome.is_ok()
    }
}

/// Returns the length of the longest prefix of `masks` in which every event can get a counter, by exhaustive search.
fn longest(masks: &[u32], taken: u32) -> usize {
    let Some((first, rest)) = masks.split_first() else { return 0 };
    let free = CounterSet::from_bits(u64::from(first & !taken));
    let mut most = 0;
    for counter in free.iter() {
        most = most.max(1 + longest(rest, taken | 1 << counter));
        if most == masks.len() {
            break;
        }
    }
    most
}

/// Returns the counters that record, after the processor was asked.
fn precise_counters(machine: &SimMachine, hal: &Hal) -> u32 {
    match examine(machine.processor(0)) {
        Ok(facilities) if facilities.precise.is_ok() => {
            let first_fixed = hal.probe_precise(ProcessorIndex::BOOT, facilities);
            let fixed = u32::from(facilities.recorders.fixed) << first_fixed;
            CounterSet::first(facilities.recorders.general).bits() | fixed
        }
        _ => 0,
    }
}

/// Events with the same counters are equal to the placement, so one for each set of counters stands for all.
#[test]
fn every_combination_of_up_to_six_events_is_placed_if_an_exhaustive_search_places_it() {
    let mut placements = 0_u32;
    for generation in INTEL.iter().chain([&BULLDOZER, &P6]) {
        let bench = Bench::new(generation, &[]);
        assert!((2..=14).contains(&bench.choices.len()), "{}: {:x?}", generation.name, bench.choices);
        let mut pending = vec![vec![]];
        while let Some(combination) = pending.pop() {
            let wanted: Vec<Choice> = combination.iter().map(|index: &usize| bench.choices[*index]).collect();
            placements += 1;
            // A combination that is refused stays refused with more events.
            if bench.place(&wanted, 0, generation.name) && wanted.len() < 6 {
                let first = combination.last().copied().unwrap_or(0);
                pending.extend((first..bench.choices.len()).map(|next| [combination.as_slice(), &[next]].concat()));
            }
        }
    }
    assert!(placements > 10_000, "{placements}");
}

#[test]
fn events_in_any_order_beside_any_others_are_placed_if_an_exhaustive_search_places_them() {
    let generation = prop::sample::select(INTEL.iter().chain([&BULLDOZER, &P6]).collect::<Vec<_>>());
    let more = prop::collection::vec(any::<usize>(), 12);
    let events = prop::collection::vec((any::<prop::sample::Index>(), prop::option::of(any::<u32>())), 1..7);
    let cases = prop::collection::vec((events, any::<u32>()), 20);
    let mut runner = seed::runner("events_in_any_order", file!());
    runner
        .run(&(generation, more, cases), |(generation, more, cases)| {
            let bench = Bench::new(generation, &more);
            for (wanted, taken) in cases {
                let narrowed = |choice: &Choice, mask: &Option<u32>| mask.map_or(*choice, |mask| choice.narrowed(mask));
                let wanted: Vec<Choice> =
                    wanted.iter().map(|(index, mask)| narrowed(index.get(&bench.choices), mask)).collect();
                bench.place(&wanted, taken & taken >> 16, generation.name);
            }
            Ok(())
        })
        .unwrap();
}

/// All tables are part of the driver. Linux's ranges of events, and unit masks of 16 bits, take 2,000 bytes of them.
#[test]
fn the_tables_take_few_bytes() {
    let intel = Microarchitecture::ALL.into_iter().map(|generation| generation.table().bytes());
    let all = intel.sum::<usize>() + tables::BULLDOZER.bytes() + tables::P6.bytes();
    assert!((10_000..14_000).contains(&all), "{all} bytes");
}

/// Errata BDM11 and BDM55, by the name of Linux's function `bdw_limit_period`.
#[test]
fn the_period_of_precise_instructions_is_a_multiple_of_64_on_broadwell() {
    for (name, event, umask, expected) in [
        ("broadwell", 0xC0, 0x01, [128, 128, 128, 128, 99_968, 100_032]),
        ("broadwell", 0xC0, 0x02, [1, 64, 127, 191, 100_000, 100_032]),
        ("haswell", 0xC0, 0x01, [1, 64, 127, 191, 100_000, 100_032]),
    ] {
        let generation = INTEL.iter().find(|generation| generation.name == name).unwrap();
        let machine = generation.machine();
        let hal = Hal::new(machine.processor(0), 1).unwrap();
        let state = hal.state_for(raw(event, umask).source(), 0, true).unwrap().with_owner(1);
        let safe = |interval| hal.with_safe_interval(ProcessorIndex::BOOT, state.with_interval(interval)).interval();
        assert_eq!([1, 64, 127, 191, 100_000, 100_032].map(safe), expected, "{name} {event:#x}/{umask:#x}");
        let counter = hal.reserve(ProcessorIndex::BOOT, state).unwrap();
        hal.set_counter_interval(ProcessorIndex::BOOT, counter, 100_000);
        assert_eq!(hal.cpu_counters(ProcessorIndex::BOOT).get(counter).interval(), expected[4], "{name}");
        // Both processors record TotalIssues by C0/01.
        let named = hal.state_for(Source(2), 0, true).unwrap().with_interval(100_000);
        let safe = |state| hal.with_safe_interval(ProcessorIndex::BOOT, state).interval();
        let precise = if name == "broadwell" { 99_968 } else { 100_000 };
        assert_eq!([safe(named), safe(named.with_precise(true))], [100_000, precise], "{name}");
    }
}
