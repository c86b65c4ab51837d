//! The code that a processor executes when it is interrupted: places with weights.

use bench_protocol::{Place, Visited};

/// The default code: sixteen kernel addresses, sixteen bytes apart, in the idle process.
const IDLE_CODE: u64 = 0xFFFF_F800_0000_0000;
const PLACES: u64 = 16;
const BYTES: u64 = 16;

/// The places of one processor, chosen by weighted round robin.
#[derive(Debug)]
pub struct InterruptSites {
    visits: Vec<Visit>,
    /// Sum of all weights.
    total: i64,
}

#[derive(Debug)]
struct Visit {
    visited: Visited,
    /// Weight times the number of all interrupts, minus the sum of the weights for each interrupt of this place.
    credit: i64,
}

impl Default for InterruptSites {
    fn default() -> Self {
        let place = |number| Place { ip: IDLE_CODE + number * BYTES, user: false, process: 0, thread: 0, weight: 1 };
        Self::of((0..PLACES).map(place))
    }
}

impl InterruptSites {
    /// Returns the sites, or None if no place has a weight.
    #[must_use]
    pub fn new(places: Vec<Place>) -> Option<Self> {
        Some(Self::of(places)).filter(|sites| sites.total > 0)
    }

    fn of(places: impl IntoIterator<Item = Place>) -> Self {
        let visit = |place| Visit { visited: Visited { place, times: 0 }, credit: 0 };
        let visits: Vec<_> = places.into_iter().map(visit).collect();
        let total = visits.iter().map(|visit| i64::from(visit.visited.place.weight)).sum();
        Self { visits, total }
    }

    /// Returns the index of the place with the highest credit, the first of equals. At any time, the shares are as
    /// close to the weights as whole interrupts allow.
    fn next(&self) -> Option<usize> {
        let possible = self.visits.iter().enumerate().filter(|(_, visit)| visit.visited.place.weight > 0);
        let owed = |visit: &Visit| visit.credit + i64::from(visit.visited.place.weight);
        possible.rev().max_by_key(|(_, visit)| owed(visit)).map(|(number, _)| number)
    }

    /// Returns the place of the next interrupt without counting it.
    #[must_use]
    pub fn peek(&self) -> Option<Place> {
        Some(self.visits.get(self.next()?)?.visited.place)
    }

    /// Returns the places that have a weight.
    #[must_use]
    pub fn places(&self) -> Vec<Place> {
        self.visited().map(|visited| visited.place).filter(|place| place.weight > 0).collect()
    }

    /// Counts an interrupt and returns its place.
    pub fn next_interrupt(&mut self) -> Option<Place> {
        let next = self.next()?;
        for visit in &mut self.visits {
            visit.credit += i64::from(visit.visited.place.weight);
        }
        let chosen = self.visits.get_mut(next)?;
        chosen.credit -= self.total;
        chosen.visited.times += 1;
        Some(chosen.visited.place)
    }

    /// Returns how often each place was interrupted.
    pub fn visited(&self) -> impl Iterator<Item = Visited> {
        self.visits.iter().map(|visit| visit.visited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn places(weights: &[u32]) -> Vec<Place> {
        let place =
            |(number, weight): (u64, &u32)| Place { ip: number, user: false, process: 1, thread: 2, weight: *weight };
        (0..).zip(weights).map(place).collect()
    }

    fn times(sites: &InterruptSites) -> Vec<u64> {
        sites.visited().map(|visited| visited.times).collect()
    }

    proptest! {
        #[test]
        fn each_round_of_interrupts_visits_each_place_as_often_as_its_weight(
            weights in prop::collection::vec(0..40_u32, 1..12),
            rounds in 1..4_u64,
        ) {
            let total: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
            prop_assume!(total > 0);
            let mut sites = InterruptSites::new(places(&weights)).unwrap();
            for round in 1..=rounds {
                for _ in 0..total {
                    let place = sites.next_interrupt().unwrap();
                    prop_assert!(place.weight > 0);
                }
                let expected: Vec<u64> = weights.iter().map(|weight| u64::from(*weight) * round).collect();
                prop_assert_eq!(times(&sites), expected);
            }
        }

        #[test]
        fn no_place_is_ever_ahead_of_its_share_by_an_interrupt(
            weights in prop::collection::vec(1..40_u64, 1..12),
            interrupts in 1..300_u64,
        ) {
            let total: u64 = weights.iter().sum();
            let narrow: Vec<u32> = weights.iter().map(|weight| u32::try_from(*weight).unwrap()).collect();
            let mut sites = InterruptSites::new(places(&narrow)).unwrap();
            for _ in 0..interrupts {
                let expected = sites.peek();
                prop_assert!(expected.is_some());
                prop_assert_eq!(sites.next_interrupt(), expected);
            }
            for (times, weight) in times(&sites).into_iter().zip(weights) {
                prop_assert!(times * total < interrupts * weight + total, "{times} of {interrupts}, {weight}/{total}");
            }
        }
    }

    #[test]
    fn the_default_places_take_turns() {
        let mut sites = InterruptSites::default();
        let first: Vec<u64> = (0..20).map(|_| sites.next_interrupt().unwrap().ip).collect();
        let expected: Vec<u64> = (0..20).map(|number| IDLE_CODE + number % PLACES * BYTES).collect();
        assert_eq!(first, expected);
        assert_eq!(sites.visited().map(|visited| visited.times).sum::<u64>(), 20);
    }

    #[test]
    fn a_place_without_weight_is_never_visited() {
        let sites = InterruptSites::new(places(&[0, 3, 0, 1])).unwrap();
        assert_eq!(sites.places().iter().map(|place| place.ip).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn sites_need_a_weight() {
        assert!(InterruptSites::new(Vec::new()).is_none());
        assert!(InterruptSites::new(places(&[0, 0])).is_none());
    }
}
