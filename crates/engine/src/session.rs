//! A session: events on processors, from their start to their final counts.
//!
//! It belongs to the handle that started it and ends with it, or is detached and ends when it is stopped.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use pmu::state::{CounterSet, CounterState};
use pmu::{Cpu, CurrentCpu, Hal, ProcessorIndex};
use protocol::{ALL_SOURCES, BRANCHES, CountRecord, DETACHED, SessionEvent, TIMER, flags};

use crate::clients::ClientId;
use crate::hardware_recording::HardwareRecording;
use crate::platform::{EngineContext, Platform};
use crate::reply::Reply;
use crate::rings::Rings;
use crate::sampler::{BRANCH_STATS, Sampler, Subscriber};

/// An event of a session, on all its processors.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// KPROFILE_SOURCE.
    pub source: u32,
    /// [`modes`](protocol::modes).
    pub modes: u32,
    /// It is sampled.
    pub sampled: bool,
    /// What serves it.
    pub service: Service,
    /// Until it is stopped.
    pub running: bool,
}

/// How an event is served.
#[derive(Debug, Clone, Copy)]
pub enum Service {
    /// By the processor's timer.
    Timer,
    /// By a counter.
    Counter {
        /// In this state, but for the owner.
        state: CounterState,
        /// With an interval that is moved towards this frequency; 0 stays.
        frequency: u32,
    },
    /// By the Branch Trace Store.
    Branches {
        /// Branches before an interrupt.
        before: u32,
    },
}

/// Events that were started together.
#[derive(Debug)]
pub struct Session {
    /// By which clients know it.
    pub number: u64,
    /// Marks the session's counters in the state of the processors.
    pub tag: u16,
    /// `None`: detached.
    pub owner: Option<ClientId>,
    /// Of whom started it.
    pub process: u32,
    /// What is counted.
    pub events: Vec<Event>,
    /// It is on every processor, also on those that are added later.
    pub everywhere: bool,
    /// Where, in ascending order.
    pub processors: Vec<ProcessorIndex>,
    /// In the same order, when it began there.
    pub begun: Vec<Timestamp>,
    /// For each processor and event, what serves it; in the order of `processors`, then of `events`.
    pub places: Vec<Place>,
    /// In the same order, what was counted when it was last read.
    pub counts: Vec<Count>,
    /// Where the samples are, if some event is sampled.
    pub rings: Option<Rings>,
    /// What processors record themselves, if some event is precise or of branches.
    pub recording: Option<HardwareRecording>,
}

/// A moment of a session.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    /// Units of 100 ns.
    pub time: u64,
    /// For how long the machine had slept by then, in the same units.
    pub asleep: u64,
}

/// What an event counted on a processor.
#[derive(Debug, Default)]
pub struct Count {
    /// At the last reading.
    value: AtomicU64,
    /// What the counter had counted for another session before this one began to share it.
    before: AtomicU64,
}

impl Count {
    /// Begins with what the counter has counted so far.
    fn begin(&self, so_far: u64) {
        self.before.store(so_far, Ordering::Relaxed);
    }

    /// Of a counter that has counted so much.
    pub fn update(&self, so_far: u64) {
        self.value.store(so_far.wrapping_sub(self.before.load(Ordering::Relaxed)), Ordering::Relaxed);
    }

    fn load(&self) -> u64 {
        self.value.load(Ordering::Relaxed)
    }
}

/// What serves an event on a processor.
#[derive(Debug, Clone, Copy)]
pub enum Place {
    /// This counter of the processor.
    Counter(u8),
    /// The processor's timer, which had expired so often at the start.
    Timer(u64),
    /// The processor's Branch Trace Store.
    Branches,
}

impl Session {
    /// The session's events on a processor, each with what serves it and the cell of its count.
    fn on(&self, processor: ProcessorIndex) -> impl Iterator<Item = (&Event, Place, &Count)> {
        let width = self.events.len();
        let range = self.processors.binary_search(&processor).ok().map(|index| index * width..(index + 1) * width);
        let places = range.clone().and_then(|range| self.places.get(range)).unwrap_or_default();
        let counts = range.and_then(|range| self.counts.get(range)).unwrap_or_default();
        self.events.iter().zip(places).zip(counts).map(|((event, place), count)| (event, *place, count))
    }

    /// Its running events of a source ([`ALL_SOURCES`] for all), on one processor.
    pub fn running(&self, processor: ProcessorIndex, source: u32) -> impl Iterator<Item = (&Event, Place, &Count)> {
        self.on(processor).filter(move |(event, ..)| event.is_running(source))
    }

    /// The counters of [`running`](Self::running), each with the cell of its count.
    pub fn counting(&self, processor: ProcessorIndex, source: u32) -> impl Iterator<Item = (u8, &Count)> {
        self.running(processor, source).filter_map(|(_, place, count)| match place {
            Place::Counter(counter) => Some((counter, count)),
            Place::Timer(_) | Place::Branches => None,
        })
    }

    /// Those counters as a set.
    pub fn counters(&self, processor: ProcessorIndex, source: u32) -> CounterSet {
        self.counting(processor, source).map(|(counter, _)| counter).collect()
    }

    /// Whether an event of it runs that a counter serves.
    pub fn uses_counters(&self) -> bool {
        self.events.iter().any(|event| event.running && matches!(event.service, Service::Counter { .. }))
    }

    /// Whether one runs that the timer serves.
    pub fn uses_timers(&self) -> bool {
        self.events.iter().any(|event| event.running && matches!(event.service, Service::Timer))
    }

    /// Whether one runs that processors record themselves.
    pub fn records(&self) -> bool {
        self.events.iter().any(|event| event.running && event.service.is_recorded())
    }

    /// Brings the counts of what timers serve up to date.
    pub fn read_timers(&self, source: u32, platform: &impl Platform) {
        for processor in &self.processors {
            for (_, place, count) in self.running(*processor, source) {
                if let Place::Timer(start) = place {
                    count.update(platform.ticks(*processor).wrapping_sub(start));
                }
            }
        }
    }

    /// Tells the counts of a source ([`ALL_SOURCES`] for all), as they were last read.
    pub fn write_counts(&self, now: Timestamp, source: u32, reply: &mut Reply<'_>) {
        for (processor, begun) in self.processors.iter().zip(&self.begun) {
            for (event, place, count) in self.running(*processor, source) {
                let [samples, lost, throttled] = match (&self.rings, place) {
                    (Some(rings), Place::Counter(counter)) if event.sampled => rings.stats(*processor, counter),
                    (Some(rings), Place::Branches) => rings.stats(*processor, BRANCH_STATS),
                    _ => [0; 3],
                };
                reply.push(&CountRecord {
                    session: self.number,
                    source: event.source,
                    modes: event.modes,
                    processor: processor.number(),
                    counter: match place {
                        Place::Counter(counter) => u32::from(counter),
                        Place::Timer(_) => TIMER,
                        Place::Branches => BRANCHES,
                    },
                    count: if matches!(place, Place::Branches) { samples + lost } else { count.load() },
                    enabled: now.time.saturating_sub(begun.time),
                    asleep: now.asleep.saturating_sub(begun.asleep),
                    samples,
                    lost,
                    throttled,
                });
            }
        }
    }

    /// Tells what it holds, and whose it is.
    pub fn write_sessions(&self, reply: &mut Reply<'_>) {
        for event in self.events.iter().filter(|event| event.running) {
            reply.push(&SessionEvent {
                session: self.number,
                source: event.source,
                modes: event.modes,
                process: self.process,
                flags: if self.owner.is_none() { flags::DETACHED } else { 0 },
                processors: u32::try_from(self.processors.len()).unwrap_or(u32::MAX),
                first_processor: self.processors.first().map_or(0, |processor| processor.number()),
            });
        }
    }

    /// Whether `number` means it, coming from `client`: as its own, as a detached one, or as one of all those.
    pub fn is_meant(&self, number: u64, client: ClientId) -> bool {
        match self.owner {
            Some(owner) => number == self.number && owner == client,
            None => number == DETACHED || number == self.number,
        }
    }

    /// Whether an event of a source ([`ALL_SOURCES`] for any) runs.
    pub fn has(&self, source: u32) -> bool {
        self.events.iter().any(|event| event.is_running(source))
    }

    /// Whether one of its events has this index in the state of its counters.
    pub fn counts_event(&self, index: u16) -> bool {
        let is_it = |event: &Event| matches!(event.service, Service::Counter { state, .. } if state.event() == index);
        self.events.iter().any(is_it)
    }

    /// Its place at the desks, while something of it is sampled.
    pub fn subscriber(&self) -> Option<Subscriber> {
        self.rings.as_ref().filter(|_| self.has(ALL_SOURCES)).map(|rings| rings.subscriber)
    }

    /// Measures the time from now on, on its processors from this index on: nothing is left to do but to
    /// [begin](Self::begin) there.
    pub fn begin_time<M: Platform>(&mut self, first: usize, context: EngineContext<'_, M>) {
        let now = context.moment();
        let width = self.events.len().max(1);
        let of_each = self.processors.iter().zip(&mut self.begun).zip(self.places.chunks_mut(width));
        for ((processor, begun), places) in of_each.skip(first) {
            *begun = now;
            for place in places {
                if let Place::Timer(start) = place {
                    *start = context.platform.ticks(*processor);
                }
            }
        }
    }

    /// Begins on the current processor. PROFILE_LEVEL.
    pub fn begin(&self, current: CurrentCpu<'_, impl Cpu>, sampler: &Sampler, now: u64) {
        let hal = sampler.hal();
        let counters = self.counters(current.index(), ALL_SOURCES);
        let is_own = |counter: &u8| hal.row(current.index()).get(*counter).owner() == self.tag;
        let own: CounterSet = counters.iter().filter(is_own).collect();
        for (counter, count) in self.counting(current.index(), ALL_SOURCES).filter(|(counter, _)| !is_own(counter)) {
            count.begin(sampler.count(current, counter, now));
        }
        if let Some(rings) = &self.rings
            && let Some(producer) = rings.take_producer(current.index())
        {
            sampler.subscribe(current, rings.subscriber, producer, rings.counters(current.index()));
        }
        if let Some(ds_buffers) = self.recording.as_ref().and_then(|recording| recording.take(current.index())) {
            sampler.install(current, ds_buffers);
        }
        let stopped = if self.rings.is_some() { sampler.rouse(current, now) } else { CounterSet::NONE };
        sampler.start(current, own.or(stopped));
    }

    /// Stops a source ([`ALL_SOURCES`] for all) on the current processor. A counter that it
    /// shares goes on for the others, of whom `successor` tells the tag. PROFILE_LEVEL.
    pub fn end(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        source: u32,
        sampler: &Sampler,
        now: u64,
        successor: impl Fn(Subscriber) -> Option<u16>,
    ) {
        let hal = sampler.hal();
        let counters = self.counters(current.index(), source);
        let ringed = self.rings.as_ref().map(|rings| rings.counters(current.index())).unwrap_or_default();
        let _ = hal.stop(current, counters.without(ringed));
        if let Some(rings) = &self.rings {
            sampler.leave(current, rings.subscriber, counters.and(ringed), now);
            for counter in counters.and(ringed).iter() {
                if let Some(heir) = sampler.subscribers(current.index(), counter).find_map(&successor) {
                    hal.hand_over(current, counter, heir);
                }
            }
            let rest = self.counters(current.index(), ALL_SOURCES).without(counters);
            let left = |event: &&Event| event.running && !event.is_running(source);
            let traced = self.events.iter().filter(left).any(|event| matches!(event.service, Service::Branches { .. }));
            if let Some(recording) = self.recording.as_ref().filter(|_| self.records()) {
                if !traced {
                    sampler.end_branches(current, now);
                }
                if !self.events.iter().filter(left).any(|event| event.service.is_recorded())
                    && let Some(ds_buffers) = sampler.uninstall(current)
                {
                    recording.put(current.index(), ds_buffers);
                }
            }
            if rest.and(ringed).is_empty()
                && !traced
                && let Some(producer) = sampler.withdraw(current, rings.subscriber)
            {
                rings.put_producer(current.index(), producer);
            }
        }
        for (counter, count) in self.counting(current.index(), source) {
            count.update(sampler.count(current, counter, now));
        }
    }

    /// Frees the counters of a source, as far as nobody shares them, and marks its events stopped.
    pub fn free(&mut self, source: u32, sampler: &Sampler) {
        for processor in &self.processors {
            let is_left = |counter: &u8| sampler.subscribers(*processor, *counter).next().is_none();
            let left = self.counters(*processor, source).iter().filter(is_left).collect();
            sampler.hal().free(*processor, left);
        }
        for event in self.events.iter_mut().filter(|event| event.is_running(source)) {
            event.running = false;
        }
    }

    /// Frees every counter that it has been given, none of which may count.
    pub fn release(&self, hal: &Hal) {
        for processor in &self.processors {
            self.release_on(*processor, hal);
        }
    }

    /// The same on one processor.
    pub fn release_on(&self, processor: ProcessorIndex, hal: &Hal) {
        hal.free(processor, hal.row(processor).counters(|state| state.owner() == self.tag));
    }
}

impl Service {
    /// Whether the processor itself records it.
    pub const fn is_recorded(&self) -> bool {
        match self {
            Self::Timer => false,
            Self::Branches { .. } => true,
            Self::Counter { state, .. } => state.precise(),
        }
    }
}

impl Event {
    /// Whether it runs and is of this source ([`ALL_SOURCES`] for any).
    pub const fn is_running(&self, source: u32) -> bool {
        self.running && (source == ALL_SOURCES || source == self.source)
    }
}
