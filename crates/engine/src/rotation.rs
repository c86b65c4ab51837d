//! Events that take turns on the counters of a processor, because a session has more events than there are counters.
//!
//! The planner puts the groups of events into rounds, each of which fits on the counters at once. A timer of the
//! processor ends a round and begins the next one, so that every group runs once in as many rounds as there are. The
//! counters are held for the session all the time: which event a counter counts is decided without the engine's lock.

use alloc::vec::Vec;

use pmu::state::{CounterSet, CounterState, upper_of};
use pmu::{Cpu, CurrentCpu, Disturbance, Hal};

use crate::time::{Duration100ns, Ticks};

/// Largest number of sessions whose events take turns on one processor.
pub const MAX_ROTATIONS: usize = 8;

/// Where and when an event is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Index of the event in its session.
    pub event: usize,
    /// Its round.
    pub round: usize,
    /// Its counter in that round.
    pub counter: u8,
    /// State of that counter, with the owner.
    pub state: CounterState,
}

impl Turn {
    /// Returns its counters: two for an event that merges a pair.
    fn counters(&self) -> CounterSet {
        let counter = CounterSet::NONE.with(self.counter);
        if self.state.merged() { counter.with(upper_of(self.counter)) } else { counter }
    }
}

/// Sums over the turns that an event has had: enough for the error of a count that is extrapolated to all the time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TurnSums {
    /// Number of turns.
    pub turns: u64,
    /// Squares of the counts.
    pub squares: u128,
    /// Products of the count and the duration, in units of 100 ns.
    pub products: u128,
    /// Squares of the durations.
    pub durations: u128,
}

impl TurnSums {
    fn add(&mut self, count: u64, duration: Duration100ns) {
        let (count, duration) = (u128::from(count), u128::from(duration.0));
        self.turns += 1;
        self.squares = self.squares.saturating_add(count * count);
        self.products = self.products.saturating_add(count * duration);
        self.durations = self.durations.saturating_add(duration * duration);
    }
}

/// What an event has counted in its turns.
#[derive(Debug, Clone, Copy)]
pub struct TurnCount {
    /// The turn of the event.
    pub turn: Turn,
    /// Events, in all turns.
    pub count: u64,
    /// Time with a counter.
    pub running: Ticks,
    /// The turns that have ended.
    pub sums: TurnSums,
    /// What another program changed first, and when.
    pub disturbance: Option<(Disturbance, u64)>,
    /// Count and time at the beginning of the current turn.
    before: (u64, Ticks),
    /// The client has stopped the event.
    stopped: bool,
}

impl TurnCount {
    /// Makes the count of an event that has had no turn yet.
    pub const fn new(turn: Turn) -> Self {
        let sums = TurnSums { turns: 0, squares: 0, products: 0, durations: 0 };
        Self { turn, count: 0, running: Ticks(0), sums, disturbance: None, before: (0, Ticks(0)), stopped: false }
    }
}

/// The rounds of a session on one processor.
#[derive(Debug)]
pub struct Rotation {
    /// Tag of the session.
    owner: u16,
    /// Duration of a round, in units of 100 ns.
    round: u32,
    events: Vec<TurnCount>,
    rounds: usize,
    /// The round that runs.
    current: usize,
    /// When the round began.
    begun: Ticks,
    /// When the counts were last updated.
    updated: Ticks,
}

impl Rotation {
    /// Makes the rotation of a session with the tag `owner` and rounds of this duration, in units of 100 ns.
    pub fn new(owner: u16, round: u32, events: Vec<TurnCount>) -> Self {
        let rounds = events.iter().map(|event| event.turn.round + 1).max().unwrap_or(0);
        Self { owner, round, events, rounds, current: 0, begun: Ticks(0), updated: Ticks(0) }
    }

    /// Returns the tag of the session.
    pub const fn owner(&self) -> u16 {
        self.owner
    }

    /// Returns the events, with their counts as last [updated](Self::update).
    pub fn events(&self) -> &[TurnCount] {
        &self.events
    }

    /// Returns whether every event was stopped.
    pub fn is_over(&self) -> bool {
        self.events.iter().all(|event| event.stopped)
    }

    fn in_round(&self) -> impl Iterator<Item = &TurnCount> {
        let current = self.current;
        self.events.iter().filter(move |event| event.turn.round == current && !event.stopped)
    }

    /// Returns the counters of the current round on which events are counted.
    fn counting(&self) -> CounterSet {
        self.in_round().map(|event| event.turn.counter).collect()
    }

    /// Returns all counters of the current round.
    fn counters(&self) -> CounterSet {
        self.in_round().fold(CounterSet::NONE, |all, event| all.or(event.turn.counters()))
    }

    /// Begins with the first round.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn begin(&mut self, current: CurrentCpu<'_, impl Cpu>, hal: &Hal<impl Sized>, now: Ticks) {
        (self.begun, self.updated) = (now, now);
        hal.start(current, self.counting());
    }

    /// Returns whether the current round is over. An expiry of the timer that comes a little early counts.
    pub fn is_due(&self, now: Ticks, clock: u64) -> bool {
        self.rounds > 1 && now.saturating_since(self.begun).duration(clock).0 >= u64::from(self.round) * 7 / 8
    }

    /// Ends the current round and begins the next one. The registers were [compared](Hal::compare). The time between,
    /// in which registers are written, belongs to no round: `time` is read before and after it, and `clock` is its
    /// number of units per second.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn rotate(
        &mut self,
        current: CurrentCpu<'_, impl Cpu>,
        hal: &Hal<impl Sized>,
        time: impl Fn() -> Ticks,
        clock: u64,
    ) {
        let ending = self.counters();
        let end = time();
        let _ = hal.stop(current, self.counting());
        self.update(current, hal, end);
        for event in self.events.iter_mut().filter(|event| event.turn.round == self.current && !event.stopped) {
            let (count, running) = event.before;
            event.sums.add(event.count - count, event.running.since(running).duration(clock));
            event.before = (event.count, event.running);
        }
        for counter in ending.iter() {
            hal.set_up(current.index(), counter, CounterState::held_by(self.owner));
        }
        let has_events = |round: &usize| self.events.iter().any(|event| event.turn.round == *round && !event.stopped);
        let following = (1..=self.rounds).map(|step| (self.current + step) % self.rounds.max(1));
        self.current = following.into_iter().find(has_events).unwrap_or(self.current);
        for event in self.in_round() {
            hal.set_up(current.index(), event.turn.counter, event.turn.state);
        }
        hal.start(current, self.counting());
        self.updated = time();
        self.begun = self.updated;
    }

    /// Updates the counts and the times of the current round. While the processor sleeps, no time passes.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn update(&mut self, current: CurrentCpu<'_, impl Cpu>, hal: &Hal<impl Sized>, now: Ticks) {
        let elapsed = if hal.is_asleep(current.index()) { Ticks(0) } else { now.saturating_since(self.updated) };
        self.updated = now;
        hal.take_disturbances(current, self.counters(), now.0, |counter, disturbance, time| {
            let disturbed = |event: &&mut TurnCount| event.turn.counter == counter && event.turn.round == self.current;
            for event in self.events.iter_mut().filter(disturbed) {
                event.disturbance = event.disturbance.or(Some((disturbance, time)));
            }
        });
        let round = self.current;
        for event in self.events.iter_mut().filter(|event| event.turn.round == round && !event.stopped) {
            let (before, _) = event.before;
            event.count = before + hal.count(current, event.turn.counter);
            event.running = Ticks(event.running.0 + elapsed.0);
        }
    }

    /// Excludes the time of a sleep that ends now.
    pub const fn wake(&mut self, now: Ticks) {
        self.updated = now;
    }

    /// Stops the events that are meant, by their indexes.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn stop(
        &mut self,
        current: CurrentCpu<'_, impl Cpu>,
        hal: &Hal<impl Sized>,
        now: Ticks,
        is_meant: impl Fn(usize) -> bool,
    ) {
        let meant = self.in_round().filter(|event| is_meant(event.turn.event));
        let _ = hal.stop(current, meant.map(|event| event.turn.counter).collect());
        self.update(current, hal, now);
        for event in self.events.iter_mut().filter(|event| is_meant(event.turn.event)) {
            event.stopped = true;
        }
    }
}
