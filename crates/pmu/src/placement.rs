//! Placement of events on counters: a matching of a bipartite graph.
//!
//! Each event has a set of counters that count it. Counters are assigned to all events if any assignment does so: an
//! event without a free counter takes one from another event, which moves to another one (an augmenting path).

use crate::state::{CounterSet, CounterState};

/// Number of counters that a set can have.
const MOST: usize = CounterSet::MOST as usize;

/// An assignment in progress.
#[derive(Debug)]
struct Matching {
    /// Counters that no session uses.
    free: CounterSet,
    /// Counters that are taken first if there is a choice.
    preferred: CounterSet,
    /// The event of each counter in `taken`. A byte: more events than there are counters have none.
    events: [u8; MOST],
    taken: CounterSet,
}

impl Matching {
    fn event(&self, counter: u8) -> Option<usize> {
        let event = self.events.get(usize::from(counter)).copied();
        event.filter(|_| self.taken.has(counter)).map(usize::from)
    }

    /// Returns the counter to take from this set if one of it is not taken.
    fn choice(&self, counters: CounterSet) -> Option<u8> {
        choice(counters.without(self.taken), self.preferred)
    }

    /// Gives a counter to one more event, by the shortest augmenting path. Returns whether there is one.
    fn add(&mut self, event: usize, counters_of: &dyn Fn(usize) -> CounterSet) -> bool {
        let mut level = counters_of(event).and(self.free);
        if let Some(counter) = self.choice(level) {
            self.give(counter, event);
            return true;
        }
        let mut seen = level;
        // The counter whose event would move to this one; the counter itself at the beginning of a path.
        let mut from = [0_u8; MOST];
        for counter in level.iter() {
            if let Some(from) = from.get_mut(usize::from(counter)) {
                *from = counter;
            }
        }
        // Every round but the last sees at least one more counter.
        while !level.is_empty() {
            if let Some(end) = self.choice(level) {
                self.shift(event, end, &from);
                return true;
            }
            let mut next = CounterSet::NONE;
            for counter in level.iter() {
                let Some(holder) = self.event(counter) else { continue };
                for other in counters_of(holder).and(self.free).without(seen).iter() {
                    if let Some(from) = from.get_mut(usize::from(other)) {
                        *from = counter;
                    }
                    seen = seen.with(other);
                    next = next.with(other);
                }
            }
            level = next;
        }
        false
    }

    fn give(&mut self, counter: u8, event: usize) {
        if let Some(place) = self.events.get_mut(usize::from(counter)) {
            *place = u8::try_from(event).unwrap_or(u8::MAX);
        }
        self.taken = self.taken.with(counter);
    }

    /// Moves the events along the path that ends at a counter that is not taken, and puts `event` at its beginning.
    fn shift(&mut self, event: usize, end: u8, from: &[u8; MOST]) {
        let mut counter = end;
        for _ in 0..MOST {
            let previous = from.get(usize::from(counter)).copied().unwrap_or(counter);
            let moved = if previous == counter { event } else { self.event(previous).unwrap_or(event) };
            self.give(counter, moved);
            if previous == counter {
                return;
            }
            counter = previous;
        }
    }
}

/// Returns one of these counters, a preferred one if there is one.
pub(crate) fn choice(open: CounterSet, preferred: CounterSet) -> Option<u8> {
    open.and(preferred).iter().next().or_else(|| open.iter().next())
}

/// An event to place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The state that its counter gets.
    pub state: CounterState,
    /// The counters that it may have.
    pub within: CounterSet,
}

impl From<CounterState> for Wanted {
    /// Creates an event that may have every counter that counts it.
    fn from(state: CounterState) -> Self {
        Self { state, within: CounterSet::first(CounterSet::MOST) }
    }
}

/// Assigns one of the `free` counters to each of the events 0 to `assigned.len() - 1`: one of `counters_of(event)`, of
/// the `preferred` ones if there is a choice. As many preferred counters are used as possible.
///
/// # Errors
/// The first event that cannot have a counter together with all events before it, whatever the assignment.
#[inline(never)] // it calls a closure by its address, which no other function does
pub fn assign(
    free: CounterSet,
    preferred: CounterSet,
    assigned: &mut [u8],
    counters_of: &dyn Fn(usize) -> CounterSet,
) -> Result<(), usize> {
    let mut matching = Matching { free, preferred, events: [0; MOST], taken: CounterSet::NONE };
    if let Some(event) = (0..assigned.len()).find(|event| !matching.add(*event, counters_of)) {
        return Err(event);
    }
    for counter in matching.taken.iter() {
        if let Some(place) = matching.event(counter).and_then(|event| assigned.get_mut(event)) {
            *place = counter;
        }
    }
    Ok(())
}

/// Implements [`ProfileInterface::assign`](crate::ProfileInterface::assign) for an interface on whose counters events
/// do not depend on each other.
///
/// # Errors
/// As that function.
pub fn assign_wanted(
    free: CounterSet,
    preferred: CounterSet,
    wanted: &[Wanted],
    assigned: &mut [u8],
) -> Result<(), usize> {
    let length = assigned.len();
    let assigned = assigned.get_mut(..wanted.len()).ok_or(length)?;
    assign(free, preferred, assigned, &|event| counters_of(wanted, event))
}

/// Returns the counters that one of the events may have.
pub(crate) fn counters_of(wanted: &[Wanted], event: usize) -> CounterSet {
    wanted.get(event).map_or(CounterSet::NONE, |wanted| wanted.within)
}
