//! NetBurst: events get counters exactly if an exhaustive search of ESCRs and counters finds an assignment.

use std::collections::BTreeMap;

use pmu::placement;
use pmu::state::{CounterSet, CounterState};
use pmu::{Hal, ProcessorIndex, Source};
use proptest::prelude::*;

use super::bench::{Bench, processor_of};
use crate::reservation::reserve_all;
use simulation::boot;

/// The source and the modes of an event, and the counters that its client allows.
type Wanted = (u64, bool, bool, u32);

const ANY: u32 = u32::MAX;

const SOURCES: [u64; 6] = [0x02, 0x06, 0x0A, 0x0B, 0x13, 0x19];
const MODES: [(bool, bool); 3] = [(true, false), (false, true), (true, true)];

/// The settings of both ESCRs of a unit, by the address of the first.
type Escrs = BTreeMap<(u32, usize), (u32, bool, bool)>;

/// Returns the first ESCR that can detect a source, its setting, and the counters of its two columns, by the manuals.
fn wiring(source: u64, threaded: bool) -> (u32, u32, [&'static [u8]; 2]) {
    let (escr, event) = match source {
        0x02 => (0x3B8, 2),
        0x0B => (0x3B8, 3),
        0x06 => (0x3CC, 6),
        0x0A => (0x3A0, 0xC),
        _ => (0x3A2, 0x13),
    };
    let counters: [&[u8]; 2] = match (escr, threaded) {
        (0x3A0 | 0x3A2, false) => [&[0], &[2, 3]],
        (_, false) => [&[12, 13, 16], &[14, 15, 17]],
        (0x3A0 | 0x3A2, true) => [&[0], &[]],
        (_, true) => [&[6, 7, 8], &[]],
    };
    (escr, event, counters)
}

/// Returns whether an assignment exists, by exhaustive search.
fn exists(wanted: &[Wanted], threaded: bool, escrs: &Escrs, taken: &[u8]) -> bool {
    let Some(((source, user, kernel, within), rest)) = wanted.split_first() else { return true };
    let (unit, event, columns) = wiring(*source, threaded);
    (0..2).any(|column| {
        let set = (event, *user, *kernel);
        if escrs.get(&(unit, column)).is_some_and(|other| *other != set) {
            return false;
        }
        let mut escrs = escrs.clone();
        escrs.insert((unit, column), set);
        let mut free =
            columns[column].iter().filter(|counter| within >> **counter & 1 == 1 && !taken.contains(counter));
        // Without narrowing, the counters of a column are equivalent, so only the first free one is tried.
        let most = if rest.iter().all(|(.., within)| *within == ANY) { 1 } else { usize::MAX };
        free.by_ref().take(most).any(|counter| exists(rest, threaded, &escrs, &[taken, &[*counter]].concat()))
    })
}

fn state(hal: &Hal, (source, user, kernel, _): Wanted) -> CounterState {
    hal.state_for(Source(source), 0, false).unwrap().with_owner(1).with_user(user).with_kernel(kernel)
}

/// Returns the ESCR settings and the counters that these events use.
fn held(used: &[(u8, Wanted)], threaded: bool) -> (Escrs, Vec<u8>) {
    let mut escrs = Escrs::new();
    for (counter, (source, user, kernel, _)) in used {
        let (unit, event, columns) = wiring(*source, threaded);
        let column = columns.iter().position(|column| column.contains(counter)).unwrap();
        let before = escrs.insert((unit, column), (event, *user, *kernel));
        assert!(before.is_none_or(|before| before == (event, *user, *kernel)), "one ESCR, two settings: {used:?}");
    }
    let mut counters: Vec<u8> = used.iter().map(|(counter, _)| *counter).collect();
    counters.sort_unstable();
    assert!(counters.is_sorted_by(|one, other| one < other), "a counter twice: {used:?}");
    (escrs, counters)
}

/// Checks that all events get counters, or that the first one without is reported, and that they count correctly.
/// Returns the counters in use.
fn assigned(bench: &Bench, used: &[(u8, Wanted)], wanted: &[Wanted]) -> Result<Vec<(u8, Wanted)>, usize> {
    let threaded = bench.counters() == 9;
    let state = |wanted: &Wanted| placement::Wanted {
        state: state(&bench.hal, *wanted),
        within: CounterSet::from_bits(wanted.3.into()),
    };
    let states: Vec<_> = wanted.iter().map(state).collect();
    let mut counters = vec![0xFF; wanted.len()];
    let outcome = reserve_all(&bench.hal, &states, &mut counters);
    let (escrs, taken) = held(used, threaded);
    let refused = (1..=wanted.len()).find(|length| !exists(&wanted[..*length], threaded, &escrs, &taken));
    assert_eq!(outcome, refused.map_or(Ok(()), |length| Err(length - 1)), "{used:?} then {wanted:?}");
    let allowed = |(counter, (.., within)): (&u8, &Wanted)| within >> counter & 1 == 1;
    assert!(outcome.is_err() || counters.iter().zip(wanted).all(allowed), "{counters:?} for {wanted:?}");
    let used = [used, &counters.into_iter().zip(wanted.iter().copied()).collect::<Vec<_>>()].concat();
    outcome?;
    held(&used, threaded);
    Ok(used)
}

fn bench(threaded: bool) -> Bench {
    let name = if threaded { "netburst-irwindale" } else { "netburst-cedarmill" };
    Bench::new(processor_of(cpuid_dumps::find(name).unwrap()))
}

/// Checks that all counters in use count their events in their modes at the same time.
fn counts_right(bench: &Bench, used: &[(u8, Wanted)]) {
    bench.model().clear_ledger();
    bench.start(used.iter().map(|(counter, _)| *counter));
    let work = |factor: u64| move |selected: model::Selected| factor * (1 + u64::from(selected.event));
    bench.machine.run(0, model::Mode::User, &work(1));
    bench.machine.run(0, model::Mode::Kernel, &work(1_000_000));
    for (counter, (source, user, kernel, _)) in used {
        let (_, event, _) = wiring(*source, false);
        let event = 1 + u64::from(if event == 0xC { 0x070C } else { event }); // with bits 15:8 of its mask
        let wanted = u64::from(*user) * event + u64::from(*kernel) * event * 1_000_000;
        let count = bench.hal.count(boot(bench), *counter);
        assert_eq!(count, wanted + bench.between(*counter), "{counter} of {used:?}");
    }
    bench.finish();
}

#[test]
fn every_subset_of_the_sources_runs_or_is_refused_as_the_search_says() {
    let (mut ran, mut refused) = (0, 0);
    for threaded in [false, true] {
        for chosen in 0..1_u32 << SOURCES.len() {
            for (user, kernel) in MODES {
                let subset = (0..).zip(SOURCES).filter(|(bit, _)| chosen >> bit & 1 == 1);
                let wanted: Vec<_> = subset.map(|(_, source)| (source, user, kernel, ANY)).collect();
                let bench = bench(threaded);
                if let Ok(used) = assigned(&bench, &[], &wanted) {
                    counts_right(&bench, &used);
                    ran += 1;
                } else {
                    assert_eq!(
                        bench.hal.cpu_counters(ProcessorIndex::BOOT).counters(|state| !state.is_free()),
                        CounterSet::NONE
                    );
                    refused += 1;
                }
            }
        }
    }
    assert!(ran > 64 * 3 && refused > 32, "{ran} ran, {refused} did not");
}

#[test]
fn without_hyper_threading_all_sources_run_at_once() {
    let wanted = SOURCES.map(|source| (source, true, true, ANY));
    let bench = bench(false);
    counts_right(&bench, &assigned(&bench, &[], &wanted).unwrap());
}

#[test]
fn the_longest_request_is_answered_too() {
    for threaded in [false, true] {
        let wanted = [(0x02, true, true, ANY); 255];
        let most = if threaded { 3 } else { 6 };
        assert_eq!(assigned(&bench(threaded), &[], &wanted), Err(most));
    }
}

fn events(most: usize) -> impl Strategy<Value = Vec<Wanted>> {
    let within = prop_oneof![Just(ANY), any::<u32>()];
    let event = (prop::sample::select(SOURCES.to_vec()), prop::sample::select(MODES.to_vec()), within);
    prop::collection::vec(event.prop_map(|(source, (user, kernel), within)| (source, user, kernel, within)), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn any_events_beside_any_others_run_or_are_refused_as_the_search_says(
        threaded in any::<bool>(),
        first in events(5),
        freed in any::<u32>(),
        second in events(10),
    ) {
        let bench = bench(threaded);
        let used = assigned(&bench, &[], &first).unwrap_or_default();
        // Some events stop, so that the remaining ones use arbitrary counters.
        let left: Vec<_> = used.iter().copied().filter(|(counter, _)| freed >> counter & 1 == 0).collect();
        let stopped = used.iter().map(|(counter, _)| *counter).filter(|counter| freed >> counter & 1 == 1).collect();
        bench.hal.free(ProcessorIndex::BOOT, stopped);
        let used = assigned(&bench, &left, &second).unwrap_or(left);
        counts_right(&bench, &used);
    }
}
