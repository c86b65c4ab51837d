//! Placement of events that take two counters: an even one, and the following odd one, which is merged into it.
//!
//! Six counters are three pairs, so that all choices of pairs are tried, and the other events are matched to what is
//! left.

use x86_defs::amd::perfmon::CORE_COUNTERS;

use crate::placement::{self, Wanted, counters_of};
use crate::state::{CounterSet, upper_of};

const PAIRS: usize = CORE_COUNTERS as usize / 2;

/// All choices of one of the pairs for each of so many events; no choice serves more of them.
const CHOICES: usize = PAIRS * PAIRS * PAIRS;

const _: () = assert!(PAIRS == 3, "a factor of `CHOICES` for each event");

/// Returns the even counters whose odd one exists too.
pub fn lower(counters: CounterSet) -> CounterSet {
    counters.iter().filter(|counter| counter % 2 == 0 && counters.has(upper_of(*counter))).collect()
}

/// A pair for each event that takes one.
#[derive(Debug, Default)]
struct Choice {
    /// The events and their even counters.
    pairs: [Option<(usize, u8)>; PAIRS],
    /// The counters of these pairs.
    taken: CounterSet,
}

impl Choice {
    /// Gives to each event in turn one of the free pairs that it may have. The digits of `number` select which. Returns
    /// `None` if it selects a pair that does not exist.
    fn new(
        mut number: usize,
        free: CounterSet,
        events: impl Iterator<Item = usize>,
        wanted: &[Wanted],
    ) -> Option<Self> {
        let mut choice = Self::default();
        let mut places = choice.pairs;
        let mut empty = places.iter_mut();
        for event in events {
            let open = lower(free.without(choice.taken)).and(counters_of(wanted, event));
            let (counter, place) = open.iter().nth(number % PAIRS).zip(empty.next())?;
            *place = Some((event, counter));
            choice.taken = choice.taken.with(counter).with(upper_of(counter));
            number /= PAIRS;
        }
        choice.pairs = places;
        Some(choice)
    }

    fn pair(&self, event: usize) -> Option<u8> {
        self.pairs.iter().flatten().find(|(other, _)| *other == event).map(|(_, counter)| *counter)
    }
}

/// Implements [`ProfileInterface::assign`](crate::ProfileInterface::assign) for events of which some are
/// [merged](crate::state::CounterState::merged).
///
/// # Errors
/// As that function.
#[inline(never)] // its stack is not in use for the events of other interfaces
pub fn assign(free: CounterSet, wanted: &[Wanted], assigned: &mut [u8]) -> Result<(), usize> {
    for (last, _) in wanted.iter().enumerate() {
        let so_far = wanted.get(..=last).zip(assigned.get_mut(..=last));
        let is_placed = so_far.is_some_and(|(wanted, assigned)| are_placed(free, wanted, assigned));
        if !is_placed {
            return Err(last);
        }
    }
    Ok(())
}

/// Assigns counters to all these events, by every choice of pairs. Returns whether there is one.
fn are_placed(free: CounterSet, wanted: &[Wanted], assigned: &mut [u8]) -> bool {
    (0..CHOICES).any(|number| {
        let merged = (0_usize..).zip(wanted).filter(|(_, wanted)| wanted.state.merged()).map(|(event, _)| event);
        let Some(choice) = Choice::new(number, free, merged, wanted) else { return false };
        let among = |event| match choice.pair(event) {
            Some(counter) => CounterSet::NONE.with(counter),
            None => counters_of(wanted, event).without(choice.taken),
        };
        placement::assign(free, CounterSet::NONE, assigned, &among).is_ok()
    })
}
