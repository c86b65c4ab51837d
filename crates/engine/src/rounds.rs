//! Placement of the events of a session on the counters of a processor: all at once, or in rounds that follow each
//! other.

use alloc::vec::Vec;

use pmu::ProcessorIndex;
use pmu::placement::Wanted;
use pmu::state::{CounterSet, CounterState, upper_of};
use protocol::MAX_EVENTS;

use crate::reply::Refusal;
use crate::sampler::Hal;
use crate::try_vec::{TryPush, try_with_capacity};

/// An event that needs a counter.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Its index in the session.
    pub event: usize,
    /// What is placed, [narrowed](pmu::Hal::narrowed) to the processor.
    pub wanted: Wanted,
    /// All counters that it can have, those that were seen not to count too.
    pub counters: CounterSet,
    /// Its group, or 0 for an event by itself.
    pub group: u32,
    /// It has a counter all the time, together with the rest of its group.
    pub pinned: bool,
    /// Samples per second to which its interval is adapted, or 0.
    pub frequency: u32,
    /// Where it was [placed](Placer::place).
    pub placed: Placed,
}

impl AsMut<Wanted> for Counted {
    fn as_mut(&mut self) -> &mut Wanted {
        &mut self.wanted
    }
}

/// Where an event was placed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Placed {
    /// Its counter.
    pub counter: u8,
    /// The round in which it has that counter; `None` if it always has.
    pub round: Option<usize>,
}

/// Why events were not placed.
#[derive(Debug)]
pub enum Unplaced {
    /// Memory is short.
    NoMemory(Refusal),
    /// There is no counter for the event with this index.
    Event(usize),
}

impl From<Refusal> for Unplaced {
    fn from(refusal: Refusal) -> Self {
        Self::NoMemory(refusal)
    }
}

/// Events that are counted at the same time.
#[derive(Debug, Clone, Copy)]
struct Round {
    /// The first of them, by its index.
    first: usize,
    /// How many there are.
    events: usize,
    /// The counters that one of them may have.
    within: CounterSet,
    /// The free counters that none of them has.
    open: CounterSet,
    /// The counters of the events do not depend on each other, except that each has its own.
    is_plain: bool,
}

/// Number of events of an attempt: one more than a processor has counters cannot be placed.
const MOST: usize = CounterSet::MOST as usize + 1;

/// An attempt to assign counters to events, and its memory, for one attempt after the other.
#[derive(Debug)]
struct Attempt {
    wanted: Vec<Wanted>,
    /// Indexes of the events: bytes, which need less stack.
    events: [u8; MOST],
    /// The counter of each event, if the attempt succeeded.
    counters: [u8; MOST],
    /// Number of the events.
    length: usize,
}

impl Attempt {
    fn new() -> Result<Self, Refusal> {
        Ok(Self { wanted: try_with_capacity(MOST)?, events: [0; MOST], counters: [0; MOST], length: 0 })
    }

    /// Notes the counter of a single event.
    fn set(&mut self, event: usize, counter: u8) {
        (self.events[0], self.counters[0], self.length) = (byte_of(event), counter, 1);
    }

    /// Returns the events with their counters.
    fn placed(&self) -> impl Iterator<Item = (usize, u8)> {
        let placed = self.events.iter().zip(&self.counters).take(self.length);
        placed.map(|(event, counter)| (usize::from(*event), *counter))
    }

    /// Returns the counters of the events.
    fn taken(&self) -> CounterSet {
        self.placed().map(|(_, counter)| counter).collect()
    }

    /// Notes where the events were placed.
    fn write(&self, events: &mut [Counted], round: Option<usize>) {
        for (event, counter) in self.placed() {
            if let Some(event) = events.get_mut(event) {
                event.placed = Placed { counter, round };
            }
        }
    }
}

const _: () = assert!(MAX_EVENTS <= u8::MAX as usize, "a byte is enough for the index of an event");

/// Returns the index of an event as a byte.
fn byte_of(event: usize) -> u8 {
    u8::try_from(event).unwrap_or(u8::MAX)
}

/// Places events on the free counters of a processor.
#[derive(Debug)]
pub struct Placer<'a> {
    /// The HAL functions.
    pub hal: &'a Hal,
    /// The processor.
    pub processor: ProcessorIndex,
    /// The events.
    pub events: &'a mut [Counted],
}

impl Placer<'_> {
    /// Reserves counters for all events, each with its own all the time. If they do not fit and `multiplexed`, pinned
    /// events have their own, and the groups of the others are put into as few rounds as first fit finds. The counters
    /// of all rounds are then reserved for `owner`, and set up for the first round. Notes where each was placed.
    ///
    /// # Errors
    /// The event for which there is no counter. Counters may be reserved then.
    pub fn place(mut self, owner: u16, multiplexed: bool) -> Result<(), Unplaced> {
        self.events.iter_mut().for_each(|event| event.placed = Placed::default());
        let (number, mut attempt) = (self.events.len(), Attempt::new()?);
        // Spares the attempt to place more events than there are counters.
        if multiplexed && number > self.free().len() as usize {
            return self.place_in_rounds(&mut attempt, owner);
        }
        match self.reserve(&mut attempt, |_| true) {
            Err(Unplaced::Event(_)) if multiplexed => self.place_in_rounds(&mut attempt, owner),
            reserved => reserved,
        }
    }

    fn place_in_rounds(&mut self, attempt: &mut Attempt, owner: u16) -> Result<(), Unplaced> {
        let (hal, processor) = (self.hal, self.processor);
        for event in self.events.iter_mut() {
            event.pinned = event.pinned || !hal.may_take_turns(processor, event.wanted);
        }
        for index in 0..self.events.len() {
            let is_pinned = self.members(index).any(|member| self.events.get(member).is_some_and(|event| event.pinned));
            if let Some(event) = self.events.get_mut(index) {
                event.pinned = is_pinned;
            }
        }
        self.reserve(attempt, |event| event.pinned)?;
        let (free, mut rounds) = (self.free(), try_with_capacity(self.events.len())?);
        for first in 0..self.events.len() {
            let is_first = self.members(first).next() == Some(first);
            if is_first && self.events.get(first).is_some_and(|event| !event.pinned) {
                let round = self.add(attempt, free, &mut rounds, first)?;
                attempt.write(self.events, Some(round));
            }
        }
        self.hold(owner);
        Ok(())
    }

    /// Assigns `free` counters to the group of an event in the first round into which it fits, or in a new one,
    /// together with the other events of the round. Returns the number of the round.
    fn add(
        &self,
        attempt: &mut Attempt,
        free: CounterSet,
        rounds: &mut Vec<Round>,
        first: usize,
    ) -> Result<usize, Unplaced> {
        let group = || self.members(first);
        let of_group = group().filter_map(|index| self.events.get(index));
        let (events, within) = of_group
            .fold((0, CounterSet::NONE), |(events, within), event| (events + 1, within.or(event.wanted.within)));
        // An event by itself takes a counter that is left, if one is, where a new assignment of the whole round would
        // give it the same.
        let alone = self.events.get(first).filter(|event| event.group == 0).map(|event| &event.wanted);
        let next = |open| alone.and_then(|wanted| self.hal.assign_next(self.processor, open, wanted));
        for (number, round) in rounds.iter_mut().enumerate() {
            let extended = Round { events: round.events + events, within: round.within.or(within), ..*round };
            // Spares the attempt to put events into a round that is full.
            if extended.events > extended.within.and(free).len() as usize {
                continue;
            }
            let next = if round.is_plain { next(round.open) } else { None };
            if let Some(Some(counter)) = next {
                attempt.set(first, counter);
                *round = Round { open: round.open.without(attempt.taken()), ..extended };
                return Ok(number);
            }
            let after = (round.first..).zip(self.events.get(round.first..).unwrap_or_default());
            let others = after.filter(|(_, event)| event.placed.round == Some(number)).take(round.events);
            match self.assign(attempt, others.map(|(index, _)| index).chain(group())) {
                Ok(()) => {
                    *round = Round { open: free.without(attempt.taken()), is_plain: next.is_some(), ..extended };
                    return Ok(number);
                }
                Err(Unplaced::Event(_)) => {}
                Err(unplaced) => return Err(unplaced),
            }
        }
        let next = next(free);
        match next {
            Some(Some(counter)) => attempt.set(first, counter),
            _ => self.assign(attempt, group())?,
        }
        rounds.try_push(Round {
            first,
            events,
            within,
            open: free.without(attempt.taken()),
            is_plain: next.is_some(),
        })?;
        Ok(rounds.len().saturating_sub(1))
    }

    /// Reserves the counters of all rounds, and sets them up for the first one.
    fn hold(&self, owner: u16) {
        let in_rounds = || self.events.iter().filter_map(|event| Some((event, event.placed.round?)));
        let counters = in_rounds().fold(CounterSet::NONE, |all, (event, _)| {
            let (held, upper) = (all.with(event.placed.counter), upper_of(event.placed.counter));
            if event.wanted.state.merged() { held.with(upper) } else { held }
        });
        for counter in counters.iter() {
            self.hal.set_up(self.processor, counter, CounterState::held_by(owner));
        }
        for (event, _) in in_rounds().filter(|(_, round)| *round == 0) {
            self.hal.set_up(self.processor, event.placed.counter, event.wanted.state);
        }
    }

    /// Returns the number of events in the group of an event, and its largest part that fits on the free counters, as a
    /// mask. `None` if all of it fits, or if the event is by itself.
    pub fn largest_part(&self, event: usize) -> Result<Option<(u64, u64)>, Refusal> {
        let mut attempt = Attempt::new()?;
        let mut part = try_with_capacity(self.events.len())?;
        let (mut members, mut mask) = (0, 0);
        for index in self.members(event) {
            part.try_push(index)?;
            match self.assign(&mut attempt, part.iter().copied()) {
                Ok(()) => mask |= 1_u64.checked_shl(members).unwrap_or_default(),
                Err(Unplaced::Event(_)) => _ = part.pop(),
                Err(Unplaced::NoMemory(refusal)) => return Err(refusal),
            }
            members += 1;
        }
        Ok((members > 1 && mask.count_ones() < members).then_some((members.into(), mask)))
    }

    /// Returns the counters that no session uses.
    fn free(&self) -> CounterSet {
        self.hal.cpu_counters(self.processor).counters(CounterState::is_free)
    }

    /// Returns the events of the group of an event: it alone if it has none.
    fn members(&self, event: usize) -> impl Iterator<Item = usize> + use<'_> {
        let group = self.events.get(event).map_or(0, |event| event.group);
        let (alone, all) = if group == 0 { (Some(event), &[][..]) } else { (None, &*self.events) };
        let others = (0..).zip(all).filter(move |(_, other)| other.group == group);
        alone.into_iter().chain(others.map(|(index, _)| index))
    }

    /// Assigns free counters to some events, which have them all the time, and reserves them.
    fn reserve(&mut self, attempt: &mut Attempt, is_meant: impl Fn(&Counted) -> bool) -> Result<(), Unplaced> {
        let meant = (0..).zip(self.events.iter()).filter(|(_, event)| is_meant(event));
        self.assign(attempt, meant.map(|(index, _)| index))?;
        for (wanted, counter) in attempt.wanted.iter().zip(&attempt.counters) {
            self.hal.set_up(self.processor, *counter, wanted.state);
        }
        attempt.write(self.events, None);
        Ok(())
    }

    /// Assigns free counters to events.
    fn assign(&self, attempt: &mut Attempt, events: impl Iterator<Item = usize>) -> Result<(), Unplaced> {
        let Attempt { wanted, events: indexes, counters, length } = attempt;
        wanted.clear();
        for (index, place) in events.zip(&mut *indexes) {
            if let Some(event) = self.events.get(index) {
                *place = byte_of(index);
                wanted.try_push(event.wanted)?;
            }
        }
        *length = wanted.len();
        let counters = counters.get_mut(..wanted.len()).unwrap_or_default();
        let assigned = self.hal.assign(self.processor, wanted, counters);
        assigned.map_err(|index| Unplaced::Event(indexes.get(index).copied().unwrap_or_default().into()))
    }
}
