//! Placement of events that a client narrows to some of their counters.

use super::*;

/// The events of a machine with every narrowing: for each set of counters, one event that a client narrows to it.
fn narrowed(bench: &Bench) -> Vec<Choice> {
    let mut found: BTreeMap<u32, Choice> = BTreeMap::new();
    for choice in &bench.choices {
        let mut mask = choice.counters;
        while mask != 0 {
            found.entry(mask).or_insert_with(|| choice.narrowed(mask));
            mask = (mask - 1) & choice.counters;
        }
    }
    found.into_values().collect()
}

/// Places every combination of up to `most` of the choices, in the order of the choices. Returns their number.
fn place_all(bench: &Bench, choices: &[Choice], most: usize, what: &str) -> u32 {
    fn extend(bench: &Bench, choices: &[Choice], most: usize, what: &str, wanted: &mut Vec<Choice>) -> u32 {
        let mut placements = 0;
        for (index, next) in choices.iter().enumerate() {
            wanted.push(*next);
            // A combination that is refused stays refused with more events.
            placements += 1;
            if bench.place(wanted, 0, what) && wanted.len() < most {
                placements += extend(bench, &choices[index..], most, what, wanted);
            }
            wanted.pop();
        }
        placements
    }
    extend(bench, choices, most, what, &mut Vec::new())
}

fn all() -> impl Iterator<Item = &'static Generation> {
    INTEL.iter().chain([&BULLDOZER, &P6])
}

/// Fixed counters are part of no narrowing here, because they multiply the sets; the next tests have them.
#[test]
fn every_narrowed_combination_of_up_to_six_events_is_placed_with_up_to_four_counters() {
    let mut placements = 0;
    for generation in all().filter(|generation| generation.general <= 4) {
        let bench = Bench::new(generation, &[]);
        let general = CounterSet::first(generation.general).bits();
        let mut choices = narrowed(&bench);
        choices.retain(|choice| choice.counters & !general == 0);
        // The tables of Core and P6 have no event that both counters count.
        let sets = if ["core", "p6"].contains(&generation.name) { 2 } else { (1 << generation.general) - 1 };
        assert_eq!(choices.len(), sets, "{}", generation.name);
        placements += place_all(&bench, &choices, 6, generation.name);
    }
    assert!(placements > 40_000, "{placements} placements");
}

/// One processor for each number of counters, with and without its fixed counters.
#[test]
fn every_narrowed_combination_of_few_events_is_placed_with_more_and_with_fixed_counters() {
    for (name, general, has_fixed, most) in
        [("tremont", 4, true, 3), ("gracemont", 6, true, 2), ("bulldozer", 6, false, 3), ("haswell", 8, false, 2)]
    {
        let generation = all().find(|generation| generation.name == name).unwrap();
        let bench = Bench::new(generation, &[]);
        let mut choices = narrowed(&bench);
        choices.retain(|choice| has_fixed || choice.counters >> general == 0);
        // All sets of general counters: each alone, and with each of the two fixed counters that share an event with
        // them; and these two and the third one alone.
        let sets = if has_fixed { 3 << general } else { (1 << general) - 1 };
        assert_eq!(choices.len(), sets, "{name}");
        place_all(&bench, &choices, most, name);
    }
}

/// There are too many combinations on six to ten counters, so that they are sampled.
#[test]
fn narrowed_events_in_any_order_beside_any_others_are_placed_if_an_exhaustive_search_places_them() {
    let benches: Vec<_> = all().map(|generation| (generation, Bench::new(generation, &[]))).collect();
    let events = prop::collection::vec((any::<prop::sample::Index>(), any::<u32>(), any::<u32>()), 1..7);
    let strategy = (prop::sample::select((0..benches.len()).collect::<Vec<_>>()), events, any::<u32>(), any::<u32>());
    let test = "narrowed_events_in_any_order";
    let mut runner = seed::runner(test, file!());
    runner
        .run(&prop::collection::vec(strategy, 60), |cases| {
            for (index, events, taken, and) in cases {
                let (generation, bench) = &benches[index];
                let narrowed = |(choice, mask, more): (prop::sample::Index, u32, u32)| {
                    choice.get(&bench.choices).narrowed(mask | more & more >> 16)
                };
                let wanted: Vec<Choice> = events.into_iter().map(narrowed).collect();
                bench.place(&wanted, taken & and, generation.name);
            }
            Ok(())
        })
        .unwrap();
}
