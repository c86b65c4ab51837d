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
    /// All counters that it can have, those that were seen not to count too.
    pub counters: CounterSet,
    /// Its group, or 0 for an event by itself.
    pub group: u32,
    /// It has a counter all the time, together with the rest of its group.
    pub pinned: bool,
}

impl AsMut<Wanted> for Counted {
    fn as_mut(&mut self) -> &mut Wanted {
        &mut self.wanted
    }
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

/// Memory of an attempt to assign counters to events, for one attempt after the other.
#[derive(Debug)]
struct Attempt {
    /// Indexes of the events.
    events: Vec<usize>,
    wanted: Vec<Wanted>,
    /// The counter of each event, if the attempt succeeded; as many as there are events in all.
    counters: Vec<u8>,
}

impl Attempt {
    fn new(most: usize) -> Result<Self, Refusal> {
        let (events, wanted) = (try_with_capacity(most)?, try_with_capacity(most)?);
        Ok(Self { events, wanted, counters: try_collect(core::iter::repeat_n(0, most), most)? })
    }

    /// Notes the counter of a single event.
    fn set(&mut self, event: usize, counter: u8) -> Result<(), Refusal> {
        self.events.clear();
        self.events.try_push(event)?;
        if let Some(first) = self.counters.first_mut() {
            *first = counter;
        }
        Ok(())
    }

    /// Returns the counters of the events.
    fn taken(&self) -> CounterSet {
        self.counters.iter().take(self.events.len()).copied().collect()
    }

    /// Notes where these events were placed.
    fn write(&self, placed: &mut [Placed], round: Option<usize>) {
        for (event, counter) in self.events.iter().zip(&self.counters) {
            if let Some(place) = placed.get_mut(*event) {
                *place = Placed { counter: *counter, round };
            }
        }
    }
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
    /// of all rounds are then reserved for `owner`, and set up for the first round.
    ///
    /// # Errors
    /// The event for which there is no counter. Counters may be reserved then.
    pub fn place(mut self, owner: u16, multiplexed: bool) -> Result<Vec<Placed>, Unplaced> {
        let number = self.events.len();
        let mut attempt = Attempt::new(number)?;
        let nowhere = Placed { counter: 0, round: None };
        let mut placed = try_collect(core::iter::repeat_n(nowhere, number), number)?;
        // Spares the attempt to place more events than there are counters.
        if multiplexed && number > self.free().len() as usize {
            self.place_in_rounds(&mut attempt, &mut placed, owner)?;
            return Ok(placed);
        }
        match self.reserve(&mut attempt, 0..number) {
            Err(Unplaced::Event(_)) if multiplexed => self.place_in_rounds(&mut attempt, &mut placed, owner)?,
            reserved => {
                reserved?;
                attempt.write(&mut placed, None);
            }
        }
        Ok(placed)
    }

    fn place_in_rounds(&mut self, attempt: &mut Attempt, placed: &mut [Placed], owner: u16) -> Result<(), Unplaced> {
        let (hal, processor) = (self.hal, self.processor);
        for event in self.events.iter_mut() {
            event.pinned = event.pinned || !hal.may_take_turns(processor, event.wanted);
        }
        let is_pinned = |event: &Counted| match event.group {
            0 => event.pinned,
            group => self.events.iter().any(|other| other.pinned && other.group == group),
        };
        let pinned = (0..).zip(self.events.iter()).filter(|(_, event)| is_pinned(event));
        self.reserve(attempt, pinned.map(|(index, _)| index))?;
        attempt.write(placed, None);
        let (free, mut rounds) = (self.free(), try_with_capacity(self.events.len())?);
        for (first, event) in self.events.iter().enumerate().filter(|(_, event)| !is_pinned(event)) {
            if event.group == 0 || self.members(first).next() == Some(first) {
                let round = self.add(attempt, free, &mut rounds, placed, first)?;
                attempt.write(placed, Some(round));
            }
        }
        self.hold(placed, owner);
        Ok(())
    }

    /// Assigns `free` counters to the group of an event in the first round into which it fits, or in a new one,
    /// together with the other events of the round. Returns the number of the round.
    fn add(
        &self,
        attempt: &mut Attempt,
        free: CounterSet,
        rounds: &mut Vec<Round>,
        placed: &[Placed],
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
                attempt.set(first, counter)?;
                *round = Round { open: round.open.without(attempt.taken()), ..extended };
                return Ok(number);
            }
            let after = (round.first..).zip(placed.get(round.first..).unwrap_or_default());
            let others = after.filter(|(_, placed)| placed.round == Some(number)).take(round.events);
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
            Some(Some(counter)) => attempt.set(first, counter)?,
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
    fn hold(&self, placed: &[Placed], owner: u16) {
        let in_rounds =
            || self.events.iter().zip(placed).filter_map(|(event, place)| Some((event, place, place.round?)));
        let counters = in_rounds().fold(CounterSet::NONE, |all, (event, place, _)| {
            let held = all.with(place.counter);
            if event.wanted.state.merged() { held.with(upper_of(place.counter)) } else { held }
        });
        for counter in counters.iter() {
            self.hal.set_up(self.processor, counter, CounterState::held_by(owner));
        }
        for (event, place, _) in in_rounds().filter(|(_, _, round)| *round == 0) {
            self.hal.set_up(self.processor, place.counter, event.wanted.state);
        }
    }

    /// Returns the number of events in the group of an event, and its largest part that fits on the free counters, as a
    /// mask. `None` if all of it fits, or if the event is by itself.
    pub fn largest_part(&self, event: usize) -> Result<Option<(u64, u64)>, Refusal> {
        let mut attempt = Attempt::new(self.events.len())?;
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

    /// Assigns free counters to events, and reserves them.
    fn reserve(&self, attempt: &mut Attempt, events: impl Iterator<Item = usize>) -> Result<(), Unplaced> {
        self.assign(attempt, events)?;
        for (wanted, counter) in attempt.wanted.iter().zip(&attempt.counters) {
            self.hal.set_up(self.processor, *counter, wanted.state);
        }
        Ok(())
    }

    /// Assigns free counters to events.
    fn assign(&self, attempt: &mut Attempt, events: impl Iterator<Item = usize>) -> Result<(), Unplaced> {
        let Attempt { events: indexes, wanted, counters } = attempt;
        indexes.clear();
        wanted.clear();
        for index in events {
            if let Some(event) = self.events.get(index) {
                indexes.try_push(index)?;
                wanted.try_push(event.wanted)?;
            }
        }
        let counters = counters.get_mut(..wanted.len()).unwrap_or_default();
        let assigned = self.hal.assign(self.processor, wanted, counters);
        assigned.map_err(|index| Unplaced::Event(indexes.get(index).copied().unwrap_or_default()))
    }
}
