//! A session: events on processors, from their start to their final counts.
//!
//! A session belongs to the handle that started it and ends with the handle. A detached session ends when it is
//! stopped.

mod conditions;
mod count;
mod group;
mod times;
mod turns;
mod uses;

use alloc::borrow::Cow;
use alloc::vec::Vec;

use pmu::first_access::Fault;
use pmu::state::{CounterSet, CounterState};
use pmu::{CoreType, Cpu, CurrentCpu, Disturbance, ProcessorIndex};

use protocol::{ALL_SOURCES, BRANCH_STORE, CountRecord, DETACHED, Event, SessionEvent, TIMER, flags};
use sample_ring::Slot;

use crate::boxed::Boxed;
use crate::clients::ClientId;
use crate::event::{EventFilter, PlannedEvent, Service};
use crate::hardware_recording::HardwareRecording;
use crate::ibs::IbsRecording;
use crate::last_branches::LastBranchRecording;
use crate::reply::{Refusal, Reply};
use crate::rings::Rings;
use crate::rotation::{Rotation, TurnCount};
use crate::sampler::{BRANCH_STATS, Hal, SampleNumbers, Sampler, Subscriber, TIME_STATS, intervals};
use crate::time::Ticks;
use crate::try_vec::try_collect;

pub use count::Count;
pub use times::Times;

/// Events that were started together.
#[derive(Debug)]
pub struct Session {
    /// Number by which clients address the session.
    pub number: u64,
    /// Owner of the session's counters in the state of the processors.
    pub tag: u16,
    /// Handle of the session. `None` if it is detached.
    pub owner: Option<ClientId>,
    /// Process that started it.
    pub process: u32,
    /// Events of the session.
    pub events: Vec<PlannedEvent>,
    /// The session is on every processor, including those that are added later.
    pub everywhere: bool,
    /// Processors of the session, in ascending order.
    pub processors: Vec<ProcessorIndex>,
    /// When the session began and was last read on each of `processors`.
    pub times: Vec<Times>,
    /// For each processor and event, what serves it and what was counted at the last reading, in the order of
    /// `processors`, then of `events`.
    pub places: Vec<(Place, Count)>,
    /// If its events may take turns on the counters: the duration of a round, in units of 100 ns.
    pub round: Option<u32>,
    /// The events that take turns on each processor where they do, in ascending order. While it runs, the processor has
    /// the rotation.
    pub rotations: Vec<(ProcessorIndex, Slot<Boxed<Rotation>>)>,
    /// Rings of the samples, if an event is sampled.
    pub rings: Option<Rings>,
    /// Recording by the processors, if an event is precise or of branches.
    pub hardware_recording: Option<HardwareRecording>,
    /// Last branches of its samples, if it has them.
    pub last_branches: Option<LastBranchRecording>,
    /// Ops that it samples.
    pub ibs_recording: Option<IbsRecording>,
    /// Whether Windows' thread profiling reads its counters.
    pub thread_profiling: ThreadProfiling,
    /// Whether it stops when another session needs what it uses.
    pub yields: bool,
    /// Whether it has yielded. It has no running event then.
    pub yielded: bool,
}

/// Use of Windows' thread profiling by a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadProfiling {
    /// Not used.
    No,
    /// To be configured when the counters run.
    Wanted,
    /// Configured with the counters of the session. If the session has no owner, its handle was closed and Windows
    /// refused to end the configuration, so that the counters must go on.
    Configured,
}

/// What serves an event on a processor.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// This counter of the processor.
    Counter(u8),
    /// This counter of the processor, when it is the turn of the event.
    Turn(u8),
    /// Measured time, and the timer of the processor if it is sampled.
    Time {
        /// Interval in units of 100 ns.
        interval: u32,
    },
    /// The Branch Trace Store of the processor.
    Branches,
    /// Nothing: the event is counted on processors of the other core type only.
    Elsewhere,
}

/// A resource of a processor that an event can need.
#[derive(Debug, Clone, Copy)]
pub enum Needed {
    /// A counter.
    Counter,
    /// The performance monitor interrupt.
    Interrupt,
    /// The Debug Store.
    DebugStore,
}

impl Session {
    /// Returns the events of the session on a processor, each with what serves it and its count.
    fn on(&self, processor: ProcessorIndex) -> impl Iterator<Item = (&PlannedEvent, Place, &Count)> {
        let width = self.events.len();
        let range = self.processors.binary_search(&processor).ok().map(|index| index * width..(index + 1) * width);
        let places = range.and_then(|range| self.places.get(range)).unwrap_or_default();
        self.events.iter().zip(places).map(|(event, (place, count))| (event, *place, count))
    }

    /// Returns what serves each event on the processor that was added last.
    pub fn last_row(&self) -> &[(Place, Count)] {
        self.places.get(self.places.len().saturating_sub(self.events.len())..).unwrap_or_default()
    }

    /// As [`last_row`](Self::last_row), to change it.
    pub fn last_row_mut(&mut self) -> &mut [(Place, Count)] {
        let first = self.places.len().saturating_sub(self.events.len());
        self.places.get_mut(first..).unwrap_or_default()
    }

    /// Returns the numbers of samples of an event on a processor.
    fn numbers(&self, processor: ProcessorIndex, event: &PlannedEvent, place: Place) -> SampleNumbers {
        match (&self.rings, place) {
            (Some(rings), Place::Counter(counter)) if event.sampled => rings.stats(processor, counter),
            (Some(rings), Place::Branches) => rings.stats(processor, BRANCH_STATS),
            (Some(rings), Place::Time { .. }) if event.sampled => rings.stats(processor, TIME_STATS),
            _ => SampleNumbers::default(),
        }
    }

    /// Returns the numbers of samples of the event with this index, on all processors.
    pub fn numbers_of(&self, index: usize) -> SampleNumbers {
        let mut sum = SampleNumbers::default();
        for processor in self.processors.iter().copied() {
            if let Some((event, place, _)) = self.on(processor).nth(index) {
                sum += self.numbers(processor, event, place);
            }
        }
        sum
    }

    /// Returns the addressed events that run on one processor.
    pub fn running(
        &self,
        processor: ProcessorIndex,
        events: EventFilter,
    ) -> impl Iterator<Item = (&PlannedEvent, Place, &Count)> {
        self.on(processor)
            .filter(move |(event, place, _)| event.is_running(events) && !matches!(place, Place::Elsewhere))
    }

    /// Returns the processors on which a running event needs a resource.
    #[inline(never)] // the same code for each
    pub fn processors_with(&self, needed: Needed) -> Result<Cow<'_, [ProcessorIndex]>, Refusal> {
        let needs = |(event, place, _): (&PlannedEvent, Place, &Count)| match needed {
            Needed::Counter => matches!(place, Place::Counter(_) | Place::Turn(_)),
            Needed::Interrupt => event.needs_interrupt(),
            Needed::DebugStore => event.service.uses_debug_store(),
        };
        let fulfilled = |processor: &&ProcessorIndex| self.running(**processor, EventFilter::ALL).any(needs);
        if self.processors.iter().all(|processor| fulfilled(&processor)) {
            return Ok(Cow::Borrowed(&self.processors)); // as in most sessions
        }
        try_collect(self.processors.iter().filter(fulfilled).copied(), self.processors.len()).map(Cow::Owned)
    }

    /// Returns whether an event runs on processors of this core type.
    pub fn is_on(&self, core_type: Option<CoreType>) -> bool {
        self.events.iter().any(|event| event.runs() && event.is_on(core_type))
    }

    /// Returns the counters of [`running`](Self::running), each with its count.
    pub fn counting(&self, processor: ProcessorIndex, events: EventFilter) -> impl Iterator<Item = (u8, &Count)> {
        self.running(processor, events).filter_map(|(_, place, count)| match place {
            Place::Counter(counter) => Some((counter, count)),
            Place::Turn(_) | Place::Time { .. } | Place::Branches | Place::Elsewhere => None,
        })
    }

    /// Returns the interval of the timers that the session needs: the one by which it samples, and that of its rounds.
    pub fn timer_interval(&self) -> Option<u32> {
        let rounds = self.round.filter(|_| self.takes_turns());
        self.sampling_interval().into_iter().chain(rounds).min()
    }

    /// Returns whether running events take turns.
    fn takes_turns(&self) -> bool {
        self.rotations.iter().any(|(processor, _)| self.takes_turns_on(*processor))
    }

    fn takes_turns_on(&self, processor: ProcessorIndex) -> bool {
        self.running(processor, EventFilter::ALL).any(|(_, place, _)| matches!(place, Place::Turn(_)))
    }

    /// Returns the processors on which a counter serves a running event.
    pub fn counting_processors(&self) -> impl Iterator<Item = ProcessorIndex> {
        self.processors_where(|_, place| matches!(place, Place::Counter(_) | Place::Turn(_)))
    }

    /// Returns the processors whose timers the session needs.
    pub fn timed_processors(&self) -> impl Iterator<Item = ProcessorIndex> {
        self.processors_where(|event, place| event.is_sampled_by_time() || matches!(place, Place::Turn(_)))
    }

    /// Returns the processors on which a running event is sampled by the performance monitor interrupt.
    pub fn interrupted_processors(&self) -> impl Iterator<Item = ProcessorIndex> {
        self.processors_where(|event, _| event.needs_interrupt())
    }

    /// Returns the processors on which a running event fulfills a condition.
    fn processors_where(&self, is_met: impl Fn(&PlannedEvent, Place) -> bool) -> impl Iterator<Item = ProcessorIndex> {
        let met = move |(event, place, _): (&PlannedEvent, Place, &Count)| is_met(event, place);
        let has_one = move |processor: &&ProcessorIndex| self.running(**processor, EventFilter::ALL).any(&met);
        self.processors.iter().filter(has_one).copied()
    }

    /// Returns those counters as a set.
    pub fn counters(&self, processor: ProcessorIndex, events: EventFilter) -> CounterSet {
        self.counting(processor, events).map(|(counter, _)| counter).collect()
    }

    /// Returns all counters of a processor that are planned for running events, whether or not they take turns.
    pub fn own_counters(&self, processor: ProcessorIndex) -> CounterSet {
        let counter = |(_, place, _): (&PlannedEvent, Place, &Count)| match place {
            Place::Counter(counter) | Place::Turn(counter) => Some(counter),
            Place::Time { .. } | Place::Branches | Place::Elsewhere => None,
        };
        self.running(processor, EventFilter::ALL).filter_map(counter).collect()
    }

    /// Calls `each` with the source, the counter and the state of each event that has a counter of a processor to
    /// itself, before the session begins.
    pub fn each_own(
        &self,
        processor: ProcessorIndex,
        hal: &Hal,
        mut each: impl FnMut(u64, u8, CounterState) -> Result<(), (u64, Fault)>,
    ) -> Result<(), (u64, Fault)> {
        for (event, place, _) in self.running(processor, EventFilter::ALL) {
            if let Place::Counter(counter) = place {
                let state = hal.cpu_counters(processor).get(counter);
                if state.owner() == self.tag {
                    each(event.requested.source, counter, state)?;
                }
            }
        }
        let turns = self.rotation_on(processor).map(|rotation| {
            rotation.try_with(|rotation| {
                rotation.events().iter().try_for_each(|TurnCount { turn, .. }| {
                    let source = self.events.get(turn.event).map_or(ALL_SOURCES, |event| event.requested.source);
                    each(source, turn.counter, turn.state)
                })
            })
        });
        turns.flatten().unwrap_or(Ok(()))
    }

    /// Marks the count of a counter of the current processor as disturbed, if the session uses the counter.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn note_disturbance(&self, processor: ProcessorIndex, counter: u8, disturbance: Disturbance, time: u64) {
        for (_, count) in self.counting(processor, EventFilter::ALL).filter(|(number, _)| *number == counter) {
            count.disturbance.note(disturbance, time);
        }
    }

    /// Returns whether a counter serves a running event.
    pub fn uses_counters(&self) -> bool {
        self.events.iter().any(|event| event.runs() && matches!(event.service, Service::Counter { .. }))
    }

    /// Notes that the session is read or stopped now on a processor. If no event of it runs, the last reading stands.
    ///
    /// # IRQL
    /// Any.
    pub fn note_reading(&self, processor: ProcessorIndex, sampler: &Sampler, now: Ticks) {
        if let Some(times) = self.times_on(processor).filter(|_| self.has(EventFilter::ALL)) {
            times.read(now, sampler.sleeps());
        }
    }

    fn times_on(&self, processor: ProcessorIndex) -> Option<&Times> {
        self.times.get(self.processors.binary_search(&processor).ok()?)
    }

    /// Writes the counts of the addressed events, as they were last read.
    pub fn write_counts(&self, events: EventFilter, sampler: &Sampler, reply: &mut Reply<'_>) {
        let (clock, hal) = (sampler.clock(), sampler.hal());
        let interface = hal.interface().kind() as u32;
        for (processor, times) in self.processors.iter().zip(&self.times) {
            let (enabled, asleep) = times.passed(clock);
            let core_type = hal.core_type(*processor).map_or(0, CoreType::number);
            let is_meant = |(_, (event, place, _)): &(u32, (&PlannedEvent, Place, &Count))| {
                event.has_count(events) && !matches!(place, Place::Elsewhere)
            };
            for (index, (event, place, count)) in (0..).zip(self.on(*processor)).filter(is_meant) {
                let numbers = self.numbers(*processor, event, place);
                let disturbed = count.disturbance.get().map(|(disturbance, time)| {
                    (disturbance, Ticks(time).saturating_since(times.begun()).duration(clock).0)
                });
                let (Disturbance { register, found, expected }, disturbed_at) = disturbed.unwrap_or_default();
                let (turns, [squares, products, durations]) = count.sums.load();
                let is_counter = matches!(place, Place::Counter(_) | Place::Turn(_));
                let core_type = if is_counter { core_type } else { event.requested.core_type };
                reply.push(&CountRecord {
                    session: self.number,
                    event: Event { core_type, ..event.requested },
                    modes: event.modes,
                    processor: processor.number(),
                    counter: match place {
                        Place::Counter(counter) | Place::Turn(counter) => u32::from(counter),
                        Place::Time { .. } => TIMER,
                        Place::Branches | Place::Elsewhere => BRANCH_STORE,
                    },
                    index,
                    count: match place {
                        Place::Branches => numbers.samples + numbers.lost,
                        // One expiry can come before its interval is over.
                        Place::Time { interval } => {
                            intervals(enabled.saturating_since(asleep), interval).max(numbers.overflows())
                        }
                        Place::Counter(_) | Place::Turn(_) | Place::Elsewhere => count.load(),
                    },
                    enabled: enabled.0,
                    asleep: asleep.0,
                    samples: numbers.samples,
                    lost: numbers.lost,
                    throttled: numbers.throttled,
                    unmet: numbers.unmet,
                    disturbed_register: register,
                    interface,
                    disturbed_found: found,
                    disturbed_expected: expected,
                    disturbed_at,
                    running: match place {
                        Place::Turn(_) => count.running().duration(clock).0,
                        _ => enabled.saturating_since(asleep).0,
                    },
                    turns,
                    squares,
                    products,
                    durations,
                    full: numbers.full,
                    movement: count.movement(),
                    recorder: count.recorder(),
                });
            }
        }
    }

    /// Writes the running events of the session and their owner.
    pub fn write_sessions(&self, reply: &mut Reply<'_>) {
        for (index, event) in self.events.iter().enumerate().filter(|(_, event)| event.runs()) {
            let mut processors = self.processors_of(index);
            let first_processor = processors.next().map_or(0, ProcessorIndex::number);
            reply.push(&SessionEvent {
                session: self.number,
                event: event.requested,
                modes: event.modes,
                process: self.process,
                flags: self.flags(),
                processors: u32::try_from(1 + processors.count()).unwrap_or(u32::MAX),
                first_processor,
                reserved: 0,
            });
        }
    }

    /// Returns the flags for [`SessionEvent`].
    fn flags(&self) -> u32 {
        let detached = if self.owner.is_none() { flags::DETACHED } else { 0 };
        let threads = if self.thread_profiling == ThreadProfiling::No { 0 } else { flags::THREADS };
        detached | threads | if self.yields { flags::YIELDS } else { 0 }
    }

    /// Returns how many counters thread profiling has to read to reach every counter of the session: those up to the
    /// highest index.
    pub fn thread_counters(&self) -> u32 {
        let counter =
            |(place, _): &(Place, Count)| if let Place::Counter(counter) = *place { Some(counter) } else { None };
        self.places.iter().filter_map(counter).max().map_or(0, |highest| u32::from(highest) + 1)
    }

    /// Returns whether Windows keeps the counters of the session, which has ended, from being stopped.
    pub fn is_kept_by_windows(&self) -> bool {
        self.owner.is_none() && self.thread_profiling == ThreadProfiling::Configured
    }

    /// Returns the processors on which the event with this index is counted.
    fn processors_of(&self, index: usize) -> impl Iterator<Item = ProcessorIndex> {
        let places = self.places.iter().skip(index).step_by(self.events.len().max(1));
        let here = self.processors.iter().zip(places).filter(|(_, (place, _))| !matches!(place, Place::Elsewhere));
        here.map(|(processor, _)| *processor)
    }

    /// Returns whether a request of `client` with `number` addresses the session: as its own, as a detached session, or
    /// as one of all detached sessions.
    pub fn is_meant(&self, number: u64, client: ClientId) -> bool {
        match self.owner {
            Some(owner) => number == self.number && owner == client,
            None => number == DETACHED || number == self.number,
        }
    }

    /// Returns whether an addressed event runs.
    pub fn has(&self, events: EventFilter) -> bool {
        self.events.iter().any(|event| event.is_running(events))
    }

    /// Returns whether one of its events has this index in the state of its counters.
    pub fn counts_event(&self, index: u16) -> bool {
        let is_it =
            |event: &PlannedEvent| matches!(event.service, Service::Counter { state, .. } if state.event() == index);
        self.events.iter().any(is_it)
    }

    /// Returns its subscriber number, while an event of it runs and it samples.
    pub fn subscriber(&self) -> Option<Subscriber> {
        self.rings.as_ref().filter(|_| self.has(EventFilter::ALL)).map(|rings| rings.subscriber)
    }

    /// Saves the extra registers that its events use on the current processor, before the driver writes them.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn save_extra(&self, current: CurrentCpu<'_, impl Cpu>, hal: &Hal) {
        if self.events.iter().any(|event| event.selector().is_some()) {
            hal.save_extra_registers(current, self.counters(current.index(), EventFilter::ALL));
        }
    }

    /// Begins on the current processor.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn begin(&self, current: CurrentCpu<'_, impl Cpu>, sampler: &Sampler, now: Ticks) {
        if let Some(times) = self.times_on(current.index()) {
            times.begin(now, sampler.sleeps());
        }
        let counters = self.counters(current.index(), EventFilter::ALL);
        let own = counters.and(sampler.counters_of(current.index(), self.tag));
        for (counter, count) in self.counting(current.index(), EventFilter::ALL) {
            count.set_recorder(sampler.hal().recorder(current.index(), counter));
            if !own.has(counter) {
                count.begin(sampler.count(current, counter, now));
            }
        }
        if let Some(rings) = &self.rings
            && let Some(producer) = rings.take_producer(current.index())
        {
            let counters = rings.counters(current.index());
            self.set_conditions(current.index(), &producer, sampler.hal());
            // The event may be one of the other core type.
            let intervals =
                self.running(current.index(), EventFilter::ALL).filter_map(|(event, place, _)| match place {
                    Place::Time { interval } if event.sampled => Some(interval),
                    _ => None,
                });
            intervals.for_each(|interval| producer.side().time().begin(interval, now));
            sampler.subscribe(current, rings.subscriber, producer, counters, now);
        }
        if let Some(ds_buffers) =
            self.hardware_recording.as_ref().and_then(|recording| recording.each.take(current.index()))
        {
            sampler.install(current, ds_buffers);
        }
        if let Some(stack) = self.last_branches.as_ref().and_then(|recording| recording.each.take(current.index())) {
            sampler.install_branch_stack(current, stack);
        }
        if let Some(unit) = self.ibs_recording.as_ref().and_then(|recording| recording.each.take(current.index())) {
            sampler.install_ibs_unit(current, unit);
        }
        if let Some(rotation) = self.rotation_on(current.index()).and_then(Slot::try_take) {
            sampler.begin_rotation(current, rotation, now);
        }
        let stopped = if self.rings.is_some() { sampler.rouse(current, now) } else { CounterSet::NONE };
        sampler.start(current, own.or(stopped));
        self.begin_group(current, sampler);
    }

    /// Stops the addressed events on the current processor. A counter that the session shares goes on
    /// for the others; `successor` returns the tag of a subscriber.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline(never)] // its frame is smaller than that of its caller, which makes less code
    pub fn end(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        events: EventFilter,
        sampler: &Sampler,
        now: Ticks,
        successor: impl Fn(Subscriber) -> Option<u16>,
    ) {
        sampler.end_group(current, self.number);
        let counters = self.counters(current.index(), events);
        let ringed = self.rings.as_ref().map(|rings| rings.counters(current.index())).unwrap_or_default();
        sampler.stop_counting(current, counters.without(ringed));
        if let Some(rings) = &self.rings {
            sampler.leave(current, rings.subscriber, counters.and(ringed), now, successor);
            let rest = self.counters(current.index(), EventFilter::ALL).without(counters);
            let left = || {
                let here = self.running(current.index(), EventFilter::ALL).map(|(event, ..)| event);
                here.filter(|event| !event.is_running(events))
            };
            let traced = left().any(|event| matches!(event.service, Service::Branches { .. }));
            if let Some(recording) = self.hardware_recording.as_ref().filter(|_| self.uses_debug_store()) {
                if !traced {
                    sampler.end_branches(current, now);
                }
                if !left().any(|event| event.service.uses_debug_store())
                    && let Some(ds_buffers) = sampler.uninstall(current)
                {
                    recording.each.put(current.index(), ds_buffers);
                }
            }
            if let Some(recording) = self.last_branches.as_ref().filter(|_| rest.and(ringed).is_empty())
                && let Some(stack) = sampler.uninstall_branch_stack(current)
            {
                recording.each.put(current.index(), stack);
            }
            if let Some(recording) = self.ibs_recording.as_ref().filter(|_| !left().any(PlannedEvent::uses_ibs))
                && let Some(unit) = sampler.uninstall_ibs_unit(current)
            {
                recording.each.put(current.index(), unit);
            }
            let timed = left().any(PlannedEvent::is_sampled_by_time);
            if !timed {
                sampler.end_time(current, rings.subscriber);
            }
            if rest.and(ringed).is_empty()
                && !traced
                && !timed
                && let Some(producer) = sampler.withdraw(current, rings.subscriber)
            {
                rings.put_producer(current.index(), producer);
            }
        }
        for (counter, count) in self.counting(current.index(), events) {
            count.update(sampler.count(current, counter, now));
        }
        self.end_turns(current, events, sampler, now);
        self.note_reading(current.index(), sampler, now);
    }

    /// Frees the counters of the addressed events that no other session shares, and marks the events as stopped.
    pub fn free(&mut self, events: EventFilter, sampler: &Sampler) {
        for processor in &self.processors {
            sampler.free(*processor, self.counters(*processor, events));
        }
        for event in self.events.iter_mut().filter(|event| event.is_running(events)) {
            event.stop();
        }
        for (processor, _) in self.rotations.iter().filter(|(processor, _)| !self.takes_turns_on(*processor)) {
            // The counters of the rounds; others of the session may still count.
            let of_session = sampler.counters_of(*processor, self.tag);
            sampler.free(*processor, of_session.without(self.counters(*processor, EventFilter::ALL)));
        }
    }

    /// Frees every counter that was reserved for the session. All of them must have been stopped.
    pub fn release(&self, hal: &Hal) {
        for processor in &self.processors {
            self.release_on(*processor, hal);
        }
    }

    /// Frees the counters on one processor.
    pub fn release_on(&self, processor: ProcessorIndex, hal: &Hal) {
        hal.free(processor, hal.cpu_counters(processor).counters(|state| state.owner() == self.tag));
    }
}
