//! Placement of the events of a session on the counters of a processor: all at once, or in rounds that follow each
//! other.

use alloc::vec::Vec;

use pmu::ProcessorIndex;
use pmu::placement::Wanted;
use pmu::state::{CounterSet, CounterState, upper_of};

use crate::reply::Refusal;
use crate::sampler::Hal;
use crate::try_vec::{TryPush, try_collect, try_with_capacity};

/// An event that needs a counter.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// What is placed, [narrowed](pmu::Hal::narrowed) to the processor.
    pub wanted: Wanted,
    /// Its group, or 0 for an event by itself.
    pub group: u32,
    /// It has a counter all the time, together with the rest of its group.
    pub pinned: bool,
}

/// Where an event was placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Events that are counted at the same time, by their indexes, and their counters.
#[derive(Debug, Default)]
struct Round {
    events: Vec<usize>,
    counters: Vec<u8>,
}

/// Places events on the free counters of a processor.
#[derive(Debug, Clone, Copy)]
pub struct Placer<'a> {
    /// The HAL functions.
    pub hal: &'a Hal,
    /// The processor.
    pub processor: ProcessorIndex,
    /// The events.
    pub events: &'a [Counted],
}

impl Placer<'_> {
    /// Reserves counters for all events, each with its own all the time. If they do not fit and `multiplexed`, pinned
    /// events have their own, and the groups of the others are put into as few rounds as first fit finds. The counters
    /// of all rounds are then reserved for `owner`, and set up for the first round.
    ///
    /// # Errors
    /// The event for which there is no counter. Counters may be reserved then.
    pub fn place(&self, owner: u16, multiplexed: bool) -> Result<Vec<Placed>, Unplaced> {
        let all = try_collect(0..self.events.len(), self.events.len())?;
        match self.reserve(all) {
            Err(Unplaced::Event(_)) if multiplexed => self.place_in_rounds(owner),
            Err(unplaced) => Err(unplaced),
            Ok(Round { counters, .. }) => {
                let placed = counters.iter().map(|counter| Placed { counter: *counter, round: None });
                Ok(try_collect(placed, self.events.len())?)
            }
        }
    }

    fn place_in_rounds(&self, owner: u16) -> Result<Vec<Placed>, Unplaced> {
        let is_pinned =
            |index: &usize| self.members(*index).any(|index| self.events.get(index).is_some_and(|event| event.pinned));
        let indexes = || 0..self.events.len();
        let pinned = self.reserve(try_collect(indexes().filter(is_pinned), self.events.len())?)?;
        let mut rounds = try_with_capacity(self.events.len())?;
        for first in indexes().filter(|index| !is_pinned(index) && self.members(*index).next() == Some(*index)) {
            self.add(&mut rounds, first)?;
        }
        let nowhere = Placed { counter: 0, round: None };
        let mut placed = try_collect(core::iter::repeat_n(nowhere, self.events.len()), self.events.len())?;
        let rounds_and_pinned = (0..).zip(&rounds).map(|(number, round)| (Some(number), round));
        for (number, Round { events, counters }) in rounds_and_pinned.chain([(None, &pinned)]) {
            for (event, counter) in events.iter().zip(counters) {
                if let Some(place) = placed.get_mut(*event) {
                    *place = Placed { counter: *counter, round: number };
                }
            }
        }
        self.hold(&rounds, owner);
        Ok(placed)
    }

    /// Adds the group of an event to the first round into which it fits, or to a new one.
    fn add(&self, rounds: &mut Vec<Round>, first: usize) -> Result<(), Unplaced> {
        let group = || self.members(first);
        let free = self.hal.cpu_counters(self.processor).counters(CounterState::is_free);
        for round in rounds.iter_mut() {
            let events = || round.events.iter().copied().chain(group());
            // Spares the attempt to put events into a round that is full.
            let within = events().filter_map(|event| self.events.get(event)).map(|event| event.wanted.within);
            let (number, within) = within.fold((0, CounterSet::NONE), |(number, all), one| (number + 1, all.or(one)));
            if number > within.and(free).len() {
                continue;
            }
            match self.assign(try_collect(events(), self.events.len())?) {
                Ok(extended) => {
                    *round = extended;
                    return Ok(());
                }
                Err(Unplaced::Event(_)) => {}
                Err(unplaced) => return Err(unplaced),
            }
        }
        rounds.try_push(self.assign(try_collect(group(), self.events.len())?)?)?;
        Ok(())
    }

    /// Reserves the counters of all rounds, and sets them up for the first one.
    fn hold(&self, rounds: &[Round], owner: u16) {
        for (counter, state) in rounds.iter().flat_map(|round| self.states(round)) {
            let upper = state.merged().then(|| upper_of(counter));
            for held in [counter].into_iter().chain(upper) {
                self.hal.set_up(self.processor, held, CounterState::held_by(owner));
            }
        }
        for (counter, state) in rounds.iter().take(1).flat_map(|round| self.states(round)) {
            self.hal.set_up(self.processor, counter, state);
        }
    }

    fn states<'r>(&'r self, Round { events, counters }: &'r Round) -> impl Iterator<Item = (u8, CounterState)> + 'r {
        let states = events.iter().filter_map(|event| self.events.get(*event)).map(|event| event.wanted.state);
        counters.iter().copied().zip(states)
    }

    /// Returns the number of events in the group of an event, and its largest part that fits on the free counters, as a
    /// mask. `None` if all of it fits, or if the event is by itself.
    pub fn largest_part(&self, event: usize) -> Result<Option<(u64, u64)>, Refusal> {
        let mut part = try_with_capacity(self.events.len())?;
        let (mut members, mut mask) = (0, 0);
        for index in self.members(event) {
            part.try_push(index)?;
            match self.assign(try_collect(part.iter().copied(), part.len())?) {
                Ok(_) => mask |= 1_u64.checked_shl(members).unwrap_or_default(),
                Err(Unplaced::Event(_)) => _ = part.pop(),
                Err(Unplaced::NoMemory(refusal)) => return Err(refusal),
            }
            members += 1;
        }
        Ok((members > 1 && mask.count_ones() < members).then_some((members.into(), mask)))
    }

    /// Returns the events of the group of an event: it alone if it has none.
    fn members(&self, event: usize) -> impl Iterator<Item = usize> + use<'_> {
        let group = self.events.get(event).map_or(0, |event| event.group);
        let all = if group == 0 { event..event.saturating_add(1) } else { 0..self.events.len() };
        all.filter(move |index| self.events.get(*index).is_some_and(|event| event.group == group))
    }

    /// Assigns free counters to events, and reserves them.
    fn reserve(&self, events: Vec<usize>) -> Result<Round, Unplaced> {
        let round = self.assign(events)?;
        for (counter, state) in self.states(&round) {
            self.hal.set_up(self.processor, counter, state);
        }
        Ok(round)
    }

    /// Assigns free counters to events.
    fn assign(&self, events: Vec<usize>) -> Result<Round, Unplaced> {
        let wanted = events.iter().filter_map(|event| self.events.get(*event)).map(|event| event.wanted);
        let wanted = try_collect(wanted, events.len())?;
        let mut counters = try_collect(core::iter::repeat_n(0, wanted.len()), wanted.len())?;
        match self.hal.assign(self.processor, &wanted, &mut counters) {
            Ok(()) => Ok(Round { events, counters }),
            Err(index) => Err(Unplaced::Event(events.get(index).copied().unwrap_or_default())),
        }
    }
}
