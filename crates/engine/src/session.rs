//! Sessions: events on processors, from their start to their final counts.
//!
//! A session belongs to the handle that started it and ends with it, or is detached and ends when it is
//! stopped. Counters are planned here, under the engine's lock; then every processor programs its own.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use profile::state::{CounterSet, CounterState};
use profile::{Hal, ProfileInterface, Source};
use protocol::status::{
    STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_PARAMETER, STATUS_NOT_FOUND, STATUS_NOT_SUPPORTED,
};
use protocol::{ALL_SOURCES, Cause, CountRecord, DETACHED, EventRequest, Holder, ProcessorSet, TIMER, flags, modes};

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
    /// For each processor and event, what serves it; in the order of `processors`, then of `events`.
    places: Vec<Place>,
    /// In the same order, what was counted when it was last read.
    counts: Vec<AtomicU64>,
}

/// What serves an event on a processor.
#[derive(Debug, Clone, Copy)]
enum Place {
    Counter(u8),
    /// The processor's timer, which had expired so often at the start.
    Timer(u64),
}

/// How an event is to be served: by a counter in this state, or by the timer.
type Wanted = Option<CounterState>;

/// All sessions.
#[derive(Debug, Default)]
pub struct Sessions {
    all: Vec<Session>,
    last_number: u64,
    /// The processors' counters were initialized, and have to be released.
    initialized: bool,
}

const NO_MEMORY: Refusal = Refusal::new(STATUS_INSUFFICIENT_RESOURCES, Cause::NoMemory);

impl Session {
    /// The session's events on a processor, each with what serves it and the cell of its count.
    fn on(&self, processor: u32) -> impl Iterator<Item = (&Event, Place, &AtomicU64)> {
        let width = self.events.len();
        let range = self.processors.binary_search(&processor).ok().map(|index| index * width..(index + 1) * width);
        let places = range.clone().and_then(|range| self.places.get(range)).unwrap_or_default();
        let counts = range.and_then(|range| self.counts.get(range)).unwrap_or_default();
        self.events.iter().zip(places).zip(counts).map(|((event, place), count)| (event, *place, count))
    }

    /// Its running events of a source ([`ALL_SOURCES`] for all), on one processor.
    fn running(&self, processor: u32, source: u32) -> impl Iterator<Item = (&Event, Place, &AtomicU64)> {
        self.on(processor).filter(move |(event, ..)| event.is_running(source))
    }

    /// The counters of [`running`](Self::running), each with the cell of its count.
    fn counting(&self, processor: u32, source: u32) -> impl Iterator<Item = (u8, &AtomicU64)> {
        self.running(processor, source).filter_map(|(_, place, count)| match place {
            Place::Counter(counter) => Some((counter, count)),
            Place::Timer(_) => None,
        })
    }

    fn counters(&self, processor: u32, source: u32) -> CounterSet {
        self.counting(processor, source).map(|(counter, _)| counter).collect()
    }

    /// Whether an event of it runs that a counter serves (or the timer, if `timer`).
    fn uses(&self, timer: bool) -> bool {
        self.events.iter().any(|event| event.running && (event.source == Source::TIME.0) == timer)
    }

    /// Brings the counts of what timers serve up to date.
    fn read_timers(&self, source: u32, machine: &impl Machine) {
        for processor in &self.processors {
            for (_, place, count) in self.running(*processor, source) {
                if let Place::Timer(start) = place {
                    count.store(machine.ticks(*processor).wrapping_sub(start), Ordering::Relaxed);
                }
            }
        }
    }

    fn tell_counts(&self, now: u64, source: u32, reply: &mut Reply<'_>) {
        for processor in &self.processors {
            for (event, place, count) in self.running(*processor, source) {
                reply.push(&CountRecord {
                    session: self.number,
                    source: event.source,
                    modes: event.modes,
                    processor: *processor,
                    counter: match place {
                        Place::Counter(counter) => u32::from(counter),
                        Place::Timer(_) => TIMER,
                    },
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
        if let Err(refusal) = self.prepare(&session, machine, hal) {
            give_back(&session, hal);
            return Err(refusal);
        }
        machine.on_each_processor(&|processor, cpu| {
            hal.start(cpu, processor, session.counters(processor, ALL_SOURCES));
        });
        self.last_number = session.number;
        self.all.push(session); // `plan` reserved the place
        Ok(self.last_number)
    }

    /// Initializes the counters for the first session that takes some, and starts the timers for the first that
    /// takes those.
    fn prepare<M: Machine>(&mut self, session: &Session, machine: &M, hal: &Hal) -> Result<(), Refusal> {
        if session.uses(false) && !self.initialized {
            let idle = AtomicU32::new(u32::MAX);
            machine.on_each_processor(&|processor, cpu| {
                if !hal.initialize(cpu, processor) {
                    idle.fetch_min(processor, Ordering::Relaxed);
                }
            });
            let idle = idle.into_inner();
            if idle != u32::MAX {
                machine.on_each_processor(&|processor, cpu| hal.release(cpu, processor));
                return Err(Refusal::new(STATUS_NOT_SUPPORTED, Cause::CountersDoNotWork).processor(idle));
            }
            self.initialized = true;
        }
        if session.uses(true) && !self.all.iter().any(|session| session.uses(true)) {
            let interval = hal.source_information(Source::TIME)?.interval;
            if !machine.start_timers(interval) {
                self.release_unused(machine, hal);
                return Err(NO_MEMORY);
            }
        }
        Ok(())
    }

    /// Gives back what no session uses any more.
    fn release_unused<M: Machine>(&mut self, machine: &M, hal: &Hal) {
        if self.initialized && !self.all.iter().any(|session| session.uses(false)) {
            machine.on_each_processor(&|processor, cpu| hal.release(cpu, processor));
            self.initialized = false;
        }
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
        let mut wanteds = with_room(events.len())?;
        for event in events {
            let wanted = how_to_serve(event, hal)?;
            if let Some(session) = self.detached_with(event).filter(|_| detached) {
                return Err(invalid(Cause::AlreadyStarted, session.number).source(event.source));
            }
            wanteds.push(wanted);
        }
        let processors = choose(wanted, machine.processors())?;
        let mut session = Session {
            number: self.last_number + 1,
            tag: self.free_tag()?,
            owner: (!detached).then_some(applicant.client),
            process: applicant.process,
            started: machine.now(),
            events: with_room(events.len())?,
            places: with_room(events.len() * processors.len())?,
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
        self.reserve(&mut session, &wanteds, (machine, hal), reply)?;
        Ok(session)
    }

    /// A counter or the timer for each event on each processor of the session, or none at all.
    fn reserve<M: Machine>(
        &self,
        session: &mut Session,
        wanteds: &[Wanted],
        (machine, hal): (&M, &Hal),
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        let Session { tag, processors, events, places, .. } = session;
        for processor in processors.iter() {
            for (wanted, event) in wanteds.iter().zip(events.iter()) {
                let place = match wanted {
                    None => Some(Place::Timer(machine.ticks(*processor))),
                    Some(state) => hal.reserve(*processor, state.with_owner(*tag)).map(Place::Counter),
                };
                if let Some(place) = place {
                    places.push(place);
                    continue;
                }
                let on_it = |other: &&Session| other.processors.binary_search(processor).is_ok();
                self.all.iter().filter(on_it).for_each(|other| other.tell_holders(reply));
                let needed = wanteds.iter().flatten().count() as u64;
                let refusal = Refusal::new(STATUS_INSUFFICIENT_RESOURCES, Cause::NoFreeCounter)
                    .source(event.source)
                    .processor(*processor)
                    .detail(u64::from(hal.interface().counters()), needed);
                give_back(session, hal);
                return Err(refusal);
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
                    for (counter, count) in session.counting(processor, ALL_SOURCES) {
                        count.store(hal.count(cpu, processor, counter), Ordering::Relaxed);
                    }
                }
            });
        }
        let now = machine.now();
        for session in meant() {
            session.read_timers(ALL_SOURCES, machine);
            session.tell_counts(now, ALL_SOURCES, reply);
        }
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
                for (counter, count) in session.counting(processor, source) {
                    count.store(hal.total(processor, counter), Ordering::Relaxed);
                }
            }
        });
        let now = machine.now();
        let timed = self.all.iter().any(|session| session.uses(true));
        for session in self.all.iter_mut().filter(|session| meant(session)) {
            session.read_timers(source, machine);
            session.tell_counts(now, source, reply);
            for processor in &session.processors {
                hal.free(*processor, session.counters(*processor, source));
            }
            for event in session.events.iter_mut().filter(|event| event.is_running(source)) {
                event.running = false;
            }
        }
        self.all.retain(|session| session.events.iter().any(|event| event.running));
        self.release_unused(machine, hal);
        if timed && !self.all.iter().any(|session| session.uses(true)) {
            machine.stop_timers();
        }
    }

    /// Tells who holds which counters.
    pub fn tell_holders(&self, reply: &mut Reply<'_>) {
        self.all.iter().for_each(|session| session.tell_holders(reply));
    }
}

/// How an event is served; refused if it can not be.
fn how_to_serve(event: &EventRequest, hal: &Hal) -> Result<Wanted, Refusal> {
    let bad_modes = invalid(Cause::BadModes, u64::from(event.modes)).source(event.source);
    hal.startable(Source(event.source))?;
    if event.modes & modes::BOTH == 0 || event.modes & !modes::BOTH != 0 {
        return Err(bad_modes);
    }
    if Source(event.source) == Source::TIME {
        // A timer goes on in both modes.
        return if event.modes == modes::BOTH { Ok(None) } else { Err(bad_modes) };
    }
    let state = hal.state_for(Source(event.source), false)?;
    Ok(Some(state.with_user(event.modes & modes::USER != 0).with_kernel(event.modes & modes::KERNEL != 0)))
}

/// Frees every counter that a session has been given, none of which counts.
fn give_back(session: &Session, hal: &Hal) {
    for processor in &session.processors {
        hal.free(*processor, hal.row(*processor).counters(|state| state.owner() == session.tag));
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
