//! The assignment of counters to events: as many events as possible get a counter, whichever counters are in use.

#![cfg(test)]

use model::Processor;
use pmu::placement::Wanted;
use pmu::state::{CounterSet, CounterState};
use pmu::{Hal, ProcessorIndex, ProfileInterface, Source};
use proptest::prelude::*;
use simulation::SimMachine;

use crate::reservation::reserve_all;

/// Returns a machine with this number of general counters and these fixed counters.
fn machine(general: u8, fixed: u32) -> SimMachine {
    let eax = u32::from_le_bytes([5, general, 48, 7]);
    SimMachine::of([Processor::new(Box::new(move |leaf, _| match leaf {
        0 => [0xA, 0x756E_6547, 0x6C65_746E, 0x4965_6E69],
        0xA => [eax, 0, fixed, 48 << 5],
        _ => [0; 4],
    }))])
}

/// Returns the length of the longest prefix of `choices` in which every event can get a counter, by exhaustive search.
fn longest(choices: &[Vec<u8>], taken: u32) -> usize {
    let Some((first, rest)) = choices.split_first() else { return 0 };
    let free = first.iter().filter(|counter| taken >> **counter & 1 == 0);
    free.map(|counter| 1 + longest(rest, taken | 1 << counter)).max().unwrap_or(0)
}

#[test]
fn no_choice_serves_more_events_than_the_one_taken() {
    let event = (prop::sample::select(vec![2_u64, 6, 10, 19, 25, 26, 27, 28]), prop::option::of(any::<u8>()));
    let strategy = (1..=4_u8, 0..=0b1111_u32, any::<u32>(), prop::collection::vec(event, 1..8));
    let mut runner = super::placement::seed::runner("no_choice_serves_more_events", file!());
    runner
        .run(&strategy, |(general, fixed, taken, wanted)| {
            let machine = machine(general, fixed);
            let hal = Hal::new(machine.processor(0), 1).unwrap();
            let cpu_counters = hal.cpu_counters(ProcessorIndex::BOOT);
            let state =
                |(source, _): &(u64, Option<u8>)| hal.state_for(Source(*source), 0, false).unwrap().with_owner(1);
            for counter in (0..hal.interface().counters()).filter(|counter| taken >> counter & 1 == 1) {
                cpu_counters.set(counter, CounterState::FREE.with_owner(2));
            }
            let within = |mask: Option<u8>| CounterSet::from_bits(mask.map_or(u64::MAX, u64::from));
            let choice = |(source, mask): &(u64, Option<u8>)| {
                hal.source_information(Source(*source)).unwrap().counters.and(within(*mask)).iter().collect()
            };
            let choices: Vec<Vec<u8>> = wanted.iter().map(choice).collect();
            let most = longest(&choices, taken);

            let states: Vec<_> = wanted.iter().map(state).collect();
            let events: Vec<_> = wanted
                .iter()
                .zip(&states)
                .map(|((_, mask), state)| Wanted { state: *state, within: within(*mask) })
                .collect();
            let mut assigned = vec![u8::MAX; wanted.len()];
            let outcome = reserve_all(&hal, &events, &mut assigned);
            assert_eq!(outcome, if most == wanted.len() { Ok(()) } else { Err(most) });
            let held = cpu_counters.counters(|state| state.owner() == 1);
            if outcome.is_ok() {
                assert_eq!(held.len() as usize, wanted.len(), "one each: {assigned:?}");
                for (counter, (choice, state)) in assigned.iter().zip(choices.iter().zip(states)) {
                    assert!(choice.contains(counter) && taken >> counter & 1 == 0, "{assigned:?}");
                    assert_eq!(cpu_counters.get(*counter), state);
                }
            } else {
                assert!(held.is_empty(), "all or none");
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn one_more_event_gets_the_counter_that_it_gets_together_with_those_before_it() {
    let event = (prop::sample::select(vec![2_u64, 6, 10, 19, 25, 26, 27, 28]), prop::option::of(any::<u8>()));
    let strategy = (1..=4_u8, 0..=0b111_u32, prop::collection::vec(event, 1..8));
    let mut runner = super::placement::seed::runner("one_more_event", file!());
    runner.run(&strategy, |(general, fixed, wanted)| one_after_the_other(general, fixed, &wanted).map(drop)).unwrap();
}

/// The first event takes one of the counters of the second, which has no other: together, the first gets its other one.
#[test]
fn an_event_that_moves_another_one_gets_no_counter_after_it() {
    assert_eq!(one_after_the_other(4, 0, &[(6, Some(0b0011)), (10, Some(0b0001))]).unwrap(), (1, 1));
    assert_eq!(one_after_the_other(4, 0, &[(10, Some(0b0001)), (6, Some(0b0011))]).unwrap(), (2, 0));
}

/// Places events one after the other, each also together with those before it. Returns how many of them leave the
/// others where they are, and how many move one.
fn one_after_the_other(general: u8, fixed: u32, wanted: &[(u64, Option<u8>)]) -> Result<(usize, usize), TestCaseError> {
    let machine = machine(general, fixed);
    let hal = Hal::new(machine.processor(0), 1).unwrap();
    let all = hal.cpu_counters(ProcessorIndex::BOOT).counters(CounterState::is_free);
    let within = |mask: Option<u8>| CounterSet::from_bits(mask.map_or(u64::MAX, u64::from));
    let narrowed = |(source, mask): &(u64, Option<u8>)| {
        let state = hal.state_for(Source(*source), 0, false).unwrap().with_owner(1);
        hal.narrowed(ProcessorIndex::BOOT, Wanted { state, within: within(*mask) })
    };
    let events: Vec<Wanted> = wanted.iter().map(narrowed).collect();
    let mut before = Vec::new();
    let (mut same, mut moved) = (0, 0);
    for number in 1..=events.len() {
        let open = all.without(before.iter().copied().collect());
        let next = hal.assign_next(ProcessorIndex::BOOT, open, &events[number - 1]);
        let mut together = vec![u8::MAX; number];
        let outcome = hal.assign(ProcessorIndex::BOOT, &events[..number], &mut together);
        if let Some(counter) = next.expect("no event of these depends on others") {
            before.push(counter);
            prop_assert_eq!((outcome, &together), (Ok(()), &before));
            same += 1;
        } else if outcome.is_ok() {
            before = together;
            moved += 1;
        } else {
            break;
        }
    }
    Ok((same, moved))
}
