//! Sessions: events on processors, from their start to their final counts.
//!
//! A session belongs to the handle that started it and ends with it, or is detached and ends when it is
//! stopped. Counters are planned here, under the engine's lock; then every processor programs its own.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use profile::state::{CounterSet, CounterState};
use profile::{Hal, ProfileInterface, Source};
use protocol::status::{STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_PARAMETER, STATUS_NOT_FOUND};
use protocol::{ALL_SOURCES, Cause, CountRecord, DETACHED, EventRequest, Holder, ProcessorSet, flags, modes};

use crate::clients::ClientId;
use crate::machine::Machine;
use crate::reply::{Refusal, Reply};

/// The tags that a counter's state has room for, and so the sessions at a time.
pub const MOST_SESSIONS: u16 = 0xFFF;

/// Who wants a session, and of what kind.
#[derive(Debug, Clone, Copy)]
pub struct Applicant {
    /// The handle.
    pub client: ClientId,
    /// Its process.
    pub process: u32,
    /// [`flags`].
    pub flags: u32,
}

#[derive(Debug, Clone, Copy)]
struct Event {
    source: u32,
    modes: u32,
    running: bool,
}

#[derive(Debug)]
struct Session {
    number: u64,
    /// Marks the session's counters in the state of the processors.
    tag: u16,
    /// `None`: detached.
    owner: Option<ClientId>,
    process: u32,
    started: u64,
    events: Vec<Event>,
    /// In ascending order.
    processors: Vec<u32>,
    /// For each processor and event, which counter; in the order of `processors`, then of `events`.
    counters: Vec<u8>,
    /// In the same order, what was counted when it was last read.
    counts: Vec<AtomicU64>,
}

/// All sessions.
#[derive(Debug, Default)]
pub struct Sessions {
    all: Vec<Session>,
    last_number: u64,
}

const NO_MEMORY: Refusal = Refusal::new(STATUS_INSUFFICIENT_RESOURCES, Cause::NoMemory);

impl Session {
    /// The session's counters of a processor, each with its event and the cell of its count.
    fn on(&self, processor: u32) -> impl Iterator<Item = (&Event, u8, &AtomicU64)> {
        let width = self.events.len();
        let place = self.processors.binary_search(&processor).ok().map(|index| index * width..(index + 1) * width);
        let counters = place.clone().and_then(|place| self.counters.get(place)).unwrap_or_default();
        let counts = place.and_then(|place| self.counts.get(place)).unwrap_or_default();
        self.events.iter().zip(counters).zip(counts).map(|((event, counter), count)| (event, *counter, count))
    }

    /// Its running events of a source ([`ALL_SOURCES`] for all), on one processor.
    fn running(&self, processor: u32, source: u32) -> impl Iterator<Item = (&Event, u8, &AtomicU64)> {
        self.on(processor).filter(move |(event, ..)| event.is_running(source))
    }

    fn counters(&self, processor: u32, source: u32) -> CounterSet {
        self.running(processor, source).map(|(_, counter, _)| counter).collect()
    }

    fn tell_counts(&self, now: u64, source: u32, reply: &mut Reply<'_>) {
        for processor in &self.processors {
            for (event, counter, count) in self.running(*processor, source) {
                reply.push(&CountRecord {
                    session: self.number,
                    source: event.source,
                    modes: event.modes,
                    processor: *processor,
                    counter: u32::from(counter),
                    count: count.load(Ordering::Relaxed),
                    enabled: now.saturating_sub(self.started),
                    reserved: 0,
                });
            }
        }
    }

    fn tell_holders(&self, reply: &mut Reply<'_>) {
        for event in self.events.iter().filter(|event| event.running) {
            reply.push(&Holder {
                session: self.number,
                source: event.source,
                modes: event.modes,
                process: self.process,
                flags: if self.owner.is_none() { flags::DETACHED } else { 0 },
                processors: u32::try_from(self.processors.len()).unwrap_or(u32::MAX),
                first_processor: self.processors.first().copied().unwrap_or_default(),
            });
        }
    }
}

impl Event {
    const fn is_running(&self, source: u32) -> bool {
        self.running && (source == ALL_SOURCES || source == self.source)
    }
}

impl Sessions {
    /// How many sessions run.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// On how many processors a source runs, in all sessions.
    pub fn processors_running(&self, source: u32) -> usize {
        let of = |session: &&Session| session.events.iter().any(|event| event.is_running(source));
        self.all.iter().filter(of).map(|session| session.processors.len()).sum()
    }

    /// Starts all of `events`, or none. Answers the session's number; refused for want of a counter, it
    /// tells who holds them.
    pub fn start<M: Machine>(
        &mut self,
        applicant: Applicant,
        wanted: &ProcessorSet,
        events: &[EventRequest],
        (machine, hal): (&M, &Hal),
        reply: &mut Reply<'_>,
    ) -> Result<u64, Refusal> {
        let session = self.plan(applicant, wanted, events, (machine, hal), reply)?;
        let first = self.all.is_empty();
        machine.on_each_processor(&|processor, cpu| {
            if first {
                hal.initialize(cpu, processor);
            }
            hal.start(cpu, processor, session.counters(processor, ALL_SOURCES));
        });
        self.last_number = session.number;
        self.all.push(session); // `plan` reserved the place
        Ok(self.last_number)
    }

    /// Everything that can be refused, before a register is touched.
    fn plan<M: Machine>(
        &mut self,
        applicant: Applicant,
        wanted: &ProcessorSet,
        events: &[EventRequest],
        (machine, hal): (&M, &Hal),
        reply: &mut Reply<'_>,
    ) -> Result<Session, Refusal> {
        if applicant.flags & !flags::ALL != 0 {
            return Err(invalid(Cause::BadFlags, u64::from(applicant.flags)));
        }
        let detached = applicant.flags & flags::DETACHED != 0;
        let mut states = with_room(events.len())?;
        for event in events {
            let index = hal.startable(Source(event.source))?;
            if event.modes & modes::BOTH == 0 || event.modes & !modes::BOTH != 0 {
                return Err(invalid(Cause::BadModes, u64::from(event.modes)).source(event.source));
            }
            if let Some(session) = self.detached_with(event).filter(|_| detached) {
                return Err(invalid(Cause::AlreadyStarted, session.number).source(event.source));
            }
            states.push(
                CounterState::FREE
                    .with_event(index)
                    .with_user(event.modes & modes::USER != 0)
                    .with_kernel(event.modes & modes::KERNEL != 0),
            );
        }
        let processors = choose(wanted, machine.processors())?;
        let mut session = Session {
            number: self.last_number + 1,
            tag: self.free_tag()?,
            owner: (!detached).then_some(applicant.client),
            process: applicant.process,
            started: machine.now(),
            events: with_room(events.len())?,
            counters: with_room(events.len() * processors.len())?,
            counts: with_room(events.len() * processors.len())?,
            processors,
        };
        self.all.try_reserve(1).map_err(|_| NO_MEMORY)?;
        session.events.extend(events.iter().map(|event| Event {
            source: event.source,
            modes: event.modes,
            running: true,
        }));
        session.counts.extend((0..session.counts.capacity()).map(|_| AtomicU64::new(0)));
        self.reserve(&mut session, &states, hal, reply)?;
        Ok(session)
    }

    /// A counter for each event on each processor of the session, or none at all.
    fn reserve(
        &self,
        session: &mut Session,
        states: &[CounterState],
        hal: &Hal,
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        let Session { tag, processors, events, counters, .. } = session;
        for processor in processors.iter() {
            for (state, event) in states.iter().zip(events.iter()) {
                if let Some(counter) = hal.reserve(*processor, state.with_owner(*tag)) {
                    counters.push(counter);
                    continue;
                }
                for processor in processors.iter() {
                    hal.free(*processor, hal.row(*processor).counters(|state| state.owner() == *tag));
                }
                let on_it = |other: &&Session| other.processors.binary_search(processor).is_ok();
                self.all.iter().filter(on_it).for_each(|other| other.tell_holders(reply));
                return Err(Refusal::new(STATUS_INSUFFICIENT_RESOURCES, Cause::NoFreeCounter)
                    .source(event.source)
                    .processor(*processor)
                    .detail(u64::from(hal.interface().counters()), states.len() as u64));
            }
        }
        Ok(())
    }

    fn detached_with(&self, wanted: &EventRequest) -> Option<&Session> {
        self.all.iter().filter(|session| session.owner.is_none()).find(|session| {
            session.events.iter().any(|event| event.is_running(wanted.source) && event.modes == wanted.modes)
        })
    }

    fn free_tag(&self) -> Result<u16, Refusal> {
        let taken = |tag: &u16| self.all.iter().any(|session| session.tag == *tag);
        (1..=MOST_SESSIONS).find(|tag| !taken(tag)).ok_or(
            Refusal::new(STATUS_INSUFFICIENT_RESOURCES, Cause::TooManySessions).detail(u64::from(MOST_SESSIONS), 0),
        )
    }

    /// Whether `session` is meant by `number`, for `client`: its own, a detached one, or all of those.
    fn is_meant(session: &Session, number: u64, client: ClientId) -> bool {
        match session.owner {
            Some(owner) => number == session.number && owner == client,
            None => number == DETACHED || number == session.number,
        }
    }

    fn find(&self, number: u64, client: ClientId) -> Result<(), Refusal> {
        let found = number == DETACHED || self.all.iter().any(|session| Self::is_meant(session, number, client));
        let refusal = Refusal::new(STATUS_NOT_FOUND, Cause::NoSuchSession).detail(number, 0);
        if found { Ok(()) } else { Err(refusal) }
    }

    /// Tells what the running events of the sessions meant have counted so far.
    pub fn read<M: Machine>(
        &self,
        number: u64,
        client: ClientId,
        (machine, hal): (&M, &Hal),
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        self.find(number, client)?;
        let meant = || self.all.iter().filter(|session| Self::is_meant(session, number, client));
        if meant().next().is_some() {
            machine.on_each_processor(&|processor, cpu| {
                for session in meant() {
                    for (_, counter, count) in session.running(processor, ALL_SOURCES) {
                        count.store(hal.count(cpu, counter), Ordering::Relaxed);
                    }
                }
            });
        }
        let now = machine.now();
        meant().for_each(|session| session.tell_counts(now, ALL_SOURCES, reply));
        Ok(())
    }

    /// Stops a source (or all) of the sessions meant, and tells the final counts.
    pub fn stop<M: Machine>(
        &mut self,
        number: u64,
        source: u32,
        client: ClientId,
        (machine, hal): (&M, &Hal),
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        self.find(number, client)?;
        let meant = |session: &Session| {
            Self::is_meant(session, number, client) && session.events.iter().any(|event| event.is_running(source))
        };
        if !self.all.iter().any(meant) && source != ALL_SOURCES {
            return Err(Refusal::new(STATUS_NOT_FOUND, Cause::NotStarted).source(source).detail(number, 0));
        }
        self.stop_those(meant, source, machine, hal, reply);
        Ok(())
    }

    /// Stops every session of a handle.
    pub fn stop_all_of<M: Machine>(&mut self, client: ClientId, machine: &M, hal: &Hal) {
        let reply = &mut Reply::over(&mut []);
        self.stop_those(|session| session.owner == Some(client), ALL_SOURCES, machine, hal, reply);
    }

    /// Stops every session there is.
    pub fn stop_every<M: Machine>(&mut self, machine: &M, hal: &Hal) {
        self.stop_those(|_| true, ALL_SOURCES, machine, hal, &mut Reply::over(&mut []));
    }

    fn stop_those<M: Machine>(
        &mut self,
        meant: impl Fn(&Session) -> bool + Sync,
        source: u32,
        machine: &M,
        hal: &Hal,
        reply: &mut Reply<'_>,
    ) {
        if !self.all.iter().any(&meant) {
            return;
        }
        let sessions = &self.all;
        machine.on_each_processor(&|processor, cpu| {
            for session in sessions.iter().filter(|session| meant(session)) {
                hal.stop(cpu, processor, session.counters(processor, source));
                for (_, counter, count) in session.running(processor, source) {
                    count.store(hal.count(cpu, counter), Ordering::Relaxed);
                }
            }
        });
        let now = machine.now();
        for session in self.all.iter_mut().filter(|session| meant(session)) {
            session.tell_counts(now, source, reply);
            for processor in &session.processors {
                hal.free(*processor, session.counters(*processor, source));
            }
            for event in session.events.iter_mut().filter(|event| event.is_running(source)) {
                event.running = false;
            }
        }
        self.all.retain(|session| session.events.iter().any(|event| event.running));
        if self.all.is_empty() {
            machine.on_each_processor(&|processor, cpu| hal.release(cpu, processor));
        }
    }

    /// Tells who holds which counters.
    pub fn tell_holders(&self, reply: &mut Reply<'_>) {
        self.all.iter().for_each(|session| session.tell_holders(reply));
    }
}

fn invalid(cause: Cause, detail: u64) -> Refusal {
    Refusal::new(STATUS_INVALID_PARAMETER, cause).detail(detail, 0)
}

fn with_room<T>(length: usize) -> Result<Vec<T>, Refusal> {
    let mut items = Vec::new();
    items.try_reserve_exact(length).map_err(|_| NO_MEMORY)?;
    Ok(items)
}

/// The processors meant, in ascending order: all active ones, or those of the set, which must be active.
fn choose(wanted: &ProcessorSet, active: u32) -> Result<Vec<u32>, Refusal> {
    let mut chosen = with_room(active as usize)?;
    if wanted.is_empty() {
        chosen.extend(0..active);
    }
    for processor in wanted.iter() {
        if processor >= active {
            return Err(invalid(Cause::NoSuchProcessor, u64::from(active)).processor(processor));
        }
        chosen.push(processor);
    }
    if chosen.is_empty() { Err(invalid(Cause::NoProcessor, u64::from(active))) } else { Ok(chosen) }
}
