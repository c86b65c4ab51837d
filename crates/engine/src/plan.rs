//! Planning of sessions: all checks that can refuse a session before a register is accessed.

mod auxiliary;
mod conditions;
mod recorded;
mod request;
mod served;
mod tag;
mod threads;

use alloc::vec::Vec;

use pmu::hal::ExtraTaken;
use pmu::placement::Wanted;
use pmu::state::{CounterSet, CounterState};
use pmu::{CoreType, ProcessorIndex};
use protocol::status::{STATUS_INSUFFICIENT_RESOURCES, STATUS_NOT_SUPPORTED};
use protocol::{
    ALL_SOURCES, BRANCHES, DEFAULT_BUDGET, ErrorCode, EventRequest, ExtraInUse, MAX_RING_BYTES, ROUND, StartHeader,
    event_flags, flags,
};

use crate::boxed::Boxed;
use crate::clients::ClientId;
use crate::event::{EventFilter, EventState, PlannedEvent, Service};
use crate::hardware_recording::HardwareRecording;
use crate::platform::{EngineContext, Platform};
use crate::processor_set::choose;
use crate::reply::{Refusal, Reply, invalid};
use crate::rings::{self, Rings};
use crate::rotation::{MAX_ROTATIONS, Rotation, Turn, TurnCount};
use crate::rounds::{Counted, Placed, Placer, Unplaced};
use crate::sampler::{BRANCH_STATS, MAX_SAMPLERS, Subscriber, TIME_STATS};
use crate::session::{Count, Place, Session, ThreadProfiling, Times};
use crate::try_vec::{NO_MEMORY, TryPush, try_collect, try_with_capacity};
use recorded::add_ibs;
use request::{check, check_core_type, how_to_serve, within};
use sample_ring::Slot;
use served::Served;

/// The client that starts a session.
#[derive(Debug, Clone, Copy)]
pub struct Requester {
    /// The handle.
    pub client: ClientId,
    /// Process of the client.
    pub process: u32,
}

/// Plans a session beside the running ones.
#[derive(Debug)]
pub struct Planner<'a, M> {
    /// The platform and its counters.
    pub context: EngineContext<'a, M>,
    /// The running sessions.
    pub others: &'a [Session],
}

impl<M: Platform> Planner<'_, M> {
    /// Plans a session with this number, with a counter or the timer for every event on every processor, or refuses it.
    /// If counters are missing, the reply lists the sessions that use them.
    pub fn plan(
        &self,
        number: u64,
        requester: Requester,
        header: &StartHeader,
        events: &[EventRequest],
        reply: &mut Reply<'_>,
    ) -> Result<Session, Refusal> {
        let EngineContext { platform, hal, .. } = self.context;
        let sampled = events.iter().any(|event| event.interval != 0 || event.event.source == BRANCHES);
        check(header, sampled, events)?;
        let detached = header.flags & flags::DETACHED != 0;
        let for_threads = header.flags & flags::THREADS != 0;
        let mut planned = try_with_capacity(events.len())?;
        hal.events.keep_raw(|index| self.others.iter().any(|other| other.counts_event(index)));
        for request in events {
            let service = how_to_serve(request, self.context)?;
            check_core_type(&request.event, hal)?;
            let sampled = request.interval != 0;
            planned.try_push(PlannedEvent {
                requested: request.event,
                modes: request.modes,
                flags: request.flags,
                sampled,
                within: within(&request.event),
                service,
                group: request.group,
                pinned: sampled || request.flags & event_flags::PINNED != 0,
                state: EventState::Running,
                counters: None,
                condition: conditions::requested(request, header, events.len())?,
                beside: request.flags & event_flags::BESIDE != 0,
            })?;
        }
        self.check_conflict(for_threads, &planned, reply)?;
        if let Some(again) = planned.iter().filter(|event| event.is_sampled_by_time()).nth(1) {
            return Err(invalid(ErrorCode::BadModes, again.modes.into()).source(again.requested.source));
        }
        let counts = |event: &PlannedEvent| matches!(event.service, Service::Counter { .. });
        if planned.iter().any(counts) && !hal.boot.is_enumerated {
            return Err(Refusal::new(STATUS_NOT_SUPPORTED, ErrorCode::CountersNotEnumerated));
        }
        let mut processors = choose(&header.processors, platform.processors())?;
        for event in &mut planned {
            self.choose_core_type(event, &processors)?;
            if let Some(session) = self.detached_with(event).filter(|_| detached) {
                return Err(invalid(ErrorCode::AlreadyStarted, session.number).source(event.requested.source));
            }
        }
        if for_threads {
            self.context.check_awake_on(&processors)?; // Windows reads the counters from the start on
            self.narrow_to_common(&mut planned, &processors)?;
        }
        processors.retain(|processor| planned.iter().any(|event| event.is_on(hal.core_type(*processor))));
        let budget = if header.budget == 0 { DEFAULT_BUDGET } else { header.budget };
        let new_rings = || Rings::new(self.free_place()?, budget, header.ring, processors.len());
        if sampled {
            self.check_memory(header.ring, processors.len())?;
        }
        let rings = sampled.then(new_rings).transpose()?;
        let mut recording =
            HardwareRecording::plan(&planned, header.batch, rings.as_ref().map(|rings| rings.subscriber))?;
        if let Some(recording) = &mut recording {
            self.check_traces(recording, &planned, &processors)?;
        }
        let subscriber = rings.as_ref().map(|rings| rings.subscriber);
        let last_branches = self.last_branches(header, &planned, &processors, subscriber)?;
        let ibs_recording = self.ibs(&planned, subscriber)?;
        let mut session = Session {
            number,
            tag: self.free_tag()?,
            owner: (!detached).then_some(requester.client),
            process: requester.process,
            places: try_with_capacity(events.len() * processors.len())?,
            times: try_with_capacity(processors.len())?,
            processors: try_with_capacity(processors.len())?,
            everywhere: header.processors.is_empty(),
            round: (header.flags & flags::MULTIPLEX != 0)
                .then(|| platform.timer_interval(header.round.max(*ROUND.start()))),
            rotations: Vec::new(),
            events: planned,
            rings,
            hardware_recording: recording,
            last_branches,
            ibs_recording,
            thread_profiling: if for_threads { ThreadProfiling::Wanted } else { ThreadProfiling::No },
            yields: header.flags & flags::YIELDS != 0,
            yielded: false,
        };
        for processor in processors {
            if let Err(refusal) = self.extend(&mut session, processor, reply) {
                session.release(hal);
                return Err(refusal);
            }
            if for_threads {
                session.keep_counters();
            }
        }
        Ok(session)
    }

    /// Extends the session to one more processor, with a higher index than those that it has, and with a counter or
    /// the timer for each running event. On failure nothing changes.
    pub fn extend(
        &self,
        session: &mut Session,
        processor: ProcessorIndex,
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        let processors = session.processors.len();
        let extended = self.try_extend(session, processor, reply);
        if extended.is_err() {
            self.retract(session, processor, processors);
        }
        extended
    }

    /// Undoes the extension of a session that had this number of processors before.
    pub fn retract(&self, session: &mut Session, processor: ProcessorIndex, processors: usize) {
        session.release_on(processor, self.context.hal);
        session.places.truncate(processors * session.events.len());
        session.processors.truncate(processors);
        session.times.truncate(processors);
        session.rotations.retain(|(other, _)| *other != processor);
    }

    #[inline(never)] // its frame is smaller than that of its caller, which makes less code
    fn try_extend(
        &self,
        session: &mut Session,
        processor: ProcessorIndex,
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        let width = session.events.len();
        reserve(&mut session.places, width)?;
        reserve(&mut session.processors, 1)?;
        reserve(&mut session.times, 1)?;
        let EngineContext { sampler, hal, .. } = self.context;
        let core_type = hal.core_type(processor);
        auxiliary::check(session, processor, hal)?;
        // Looked up once: it takes a look at every processor.
        let other_thread = hal.other_thread(processor);
        let (mut own, mut shared) = (try_with_capacity(width)?, CounterSet::NONE);
        for (index, event) in session.events.iter_mut().enumerate() {
            let place = match self.served(processor, other_thread, core_type, session.tag, event, shared)? {
                Served::By(place) => place,
                Served::Own { wanted, counters, frequency } => {
                    let (group, pinned, placed) = (event.group, event.pinned, Placed::default());
                    own.try_push(Counted { event: index, wanted, counters, group, pinned, frequency, placed })?;
                    Place::Elsewhere // until it is placed
                }
            };
            if let Place::Counter(counter) = place {
                shared = shared.with(counter);
            }
            add_place(&mut session.places, place)?;
        }
        let reloadable = hal.reloadable(processor);
        conditions::let_counters_decide(session, &mut own, reloadable);
        let source_of = |session: &Session, own: &[Counted], index: usize| {
            own.get(index).and_then(|own| session.events.get(own.event)).map_or(ALL_SOURCES, |one| one.requested.source)
        };
        if let Err(taken) = hal.choose_extra_registers(processor, &mut own) {
            return Err(self.extra_taken(source_of(session, &own, taken.event), taken, processor, reply));
        }
        let unsteady = hal.tried(processor).unsteady();
        for Counted { wanted, counters, .. } in &mut own {
            // The other register of an event may have another event number, which other counters count.
            if wanted.state.alternate() {
                *counters = hal.counters_for(processor, wanted.state);
            }
            *counters = wanted.within.and(*counters);
            let steady = counters.without(unsteady);
            let within = if steady.is_empty() { *counters } else { steady };
            wanted.within = if wanted.state.reloaded() { within.and(reloadable) } else { within };
        }
        let multiplexed = session.round.is_some() && self.may_rotate_on(processor);
        loop {
            let index = match (Placer { hal, processor, events: &mut own }).place(session.tag, multiplexed) {
                Ok(()) => break,
                Err(Unplaced::NoMemory(refusal)) => return Err(refusal),
                Err(Unplaced::Event(index)) => index,
            };
            // The handler decides on a condition before there is a refusal.
            if conditions::let_handler_decide(&mut own) {
                session.release_on(processor, hal);
                continue;
            }
            // A counter that does not count, and a mark on the count, before a refusal.
            if let Some(Counted { wanted, counters, .. }) = own.get_mut(index)
                && wanted.within != *counters
            {
                wanted.within = *counters;
                session.release_on(processor, hal);
                continue;
            }
            let source = source_of(session, &own, index);
            let part = Placer { hal, processor, events: &mut own }.largest_part(index)?;
            if let Some((members, part)) = part.filter(|_| self.is_free(session, processor)) {
                return Err(group_too_large(source, processor, members, part));
            }
            return Err(self.no_counter(session, source, processor, reply));
        }
        let row = session.last_row_mut();
        for Counted { event, placed: Placed { counter, round }, frequency, .. } in &own {
            let Some((place, _)) = row.get_mut(*event) else { continue };
            if round.is_some() {
                *place = Place::Turn(*counter);
            } else {
                sampler.set_frequency(processor, *counter, *frequency);
                *place = Place::Counter(*counter);
            }
        }
        add_rotation(session, processor, &own)?;
        session.times.try_push(Times::default())?;
        session.processors.try_push(processor)?;
        conditions::check(session, processor, hal)?;
        if let Some(recording) = &mut session.hardware_recording {
            recording.add(processor, &session.events, core_type)?;
        }
        if let Some(recording) = &mut session.last_branches {
            recording.add(processor, &session.events, core_type)?;
        }
        add_ibs(session, processor)?;
        self.add_ring(session, processor)
    }

    /// Adds the ring of the processor that was added last to a session that samples.
    #[inline(never)] // the memory that it gets has a pointer to the function that frees it
    fn add_ring(&self, session: &mut Session, processor: ProcessorIndex) -> Result<(), Refusal> {
        let Some(mut rings) = session.rings.take() else { return Ok(()) };
        let sampled = |(index, (event, (place, _))): (u32, (&PlannedEvent, &(Place, Count)))| match place {
            Place::Counter(counter) if event.sampled => Some((*counter, index)),
            Place::Branches => Some((BRANCH_STATS, index)),
            Place::Time { .. } if event.sampled => Some((TIME_STATS, index)),
            _ => None,
        };
        let counters = (0..).zip(session.events.iter().zip(session.last_row())).filter_map(sampled);
        let memory = rings.bytes_of_each().and_then(|bytes| self.context.platform.ring_memory(processor, bytes));
        let added = try_collect(counters, session.events.len())
            .and_then(|counters| rings.add(processor, &counters, memory.ok_or(NO_MEMORY)?));
        session.rings = Some(rings);
        added
    }

    /// Checks that the rings of the session and of the others are not larger than allowed.
    fn check_memory(&self, records: u32, processors: usize) -> Result<(), Refusal> {
        let others = self.others.iter().filter_map(|other| other.rings.as_ref());
        let wanted = others.map(Rings::bytes).fold(rings::bytes(records, processors), u64::saturating_add);
        if wanted <= MAX_RING_BYTES {
            return Ok(());
        }
        Err(Refusal::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::RingsTooLarge).detail(wanted, MAX_RING_BYTES))
    }

    /// Returns whether one more session can take turns on a processor.
    fn may_rotate_on(&self, processor: ProcessorIndex) -> bool {
        self.others.iter().filter(|other| other.rotates_on(processor)).count() < MAX_ROTATIONS
    }

    /// Returns whether no other session has a counter of a processor; for threads, of any.
    fn is_free(&self, session: &Session, processor: ProcessorIndex) -> bool {
        if session.thread_profiling != ThreadProfiling::No && self.others.iter().any(Session::uses_counters) {
            return false;
        }
        let of_others = |state: CounterState| !state.is_free() && state.owner() != session.tag;
        self.context.hal.cpu_counters(processor).counters(of_others).is_empty()
    }

    /// Returns the refusal for the event of `source` if no counter of `processor` is free, and writes the sessions
    /// there to the reply.
    fn no_counter(&self, session: &Session, source: u64, processor: ProcessorIndex, reply: &mut Reply<'_>) -> Refusal {
        let events = &session.events;
        let core_type = self.context.hal.core_type(processor);
        // A counter that is in use on one processor is of no use for threads.
        let on_it = |other: &&Session| {
            session.thread_profiling != ThreadProfiling::No || other.processors.binary_search(&processor).is_ok()
        };
        self.others.iter().filter(on_it).for_each(|other| other.write_sessions(reply));
        let fitting = |event: &PlannedEvent| match event.service {
            Service::Counter { state, .. } if event.is_on(core_type) => {
                self.context.hal.counters_for(processor, state).and(event.within)
            }
            Service::Counter { .. } | Service::Time { .. } | Service::Branches { .. } => CounterSet::NONE,
        };
        let wanted = events.iter().find(|event| event.requested.source == source && event.is_on(core_type));
        let there = wanted.map(fitting).unwrap_or_default();
        if let Some(other) = wanted.and_then(|wanted| self.blocked_by_other_thread(wanted, processor)) {
            return Refusal::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::OtherThread)
                .source(source)
                .processor(processor)
                .detail(other.number().into(), 0);
        }
        let within = |own: CounterSet| !own.is_empty() && own.without(there).is_empty();
        let needed = events.iter().map(fitting).filter(|own| within(*own)).count() as u64;
        Refusal::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::NoFreeCounter)
            .source(source)
            .processor(processor)
            .detail(there.len().into(), needed)
    }

    /// Returns the refusal for an event whose extra registers have other values on `processor`, and writes the sessions
    /// there to the reply.
    fn extra_taken(&self, source: u64, taken: ExtraTaken, processor: ProcessorIndex, reply: &mut Reply<'_>) -> Refusal {
        let on_it = |other: &&Session| other.processors.binary_search(&taken.holder).is_ok();
        self.others.iter().filter(on_it).for_each(|other| other.write_sessions(reply));
        let in_use = ExtraInUse { register: taken.register.address(), holder: taken.holder.number() };
        Refusal::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::ExtraRegisterTaken)
            .source(source)
            .processor(processor)
            .detail(in_use.to_detail(), taken.value)
    }

    /// Returns the other thread of the core if a counter of `processor` is free for an event, but cannot be
    /// used beside the counters of that thread.
    fn blocked_by_other_thread(&self, event: &PlannedEvent, processor: ProcessorIndex) -> Option<ProcessorIndex> {
        let hal = self.context.hal;
        let other = hal.other_thread(processor)?;
        let Service::Counter { state, .. } = event.service else { return None };
        let beside = hal.undisturbed(processor, Some(other), state);
        let free = hal.cpu_counters(processor).counters(CounterState::is_free);
        let fitting = hal.counters_for(processor, state).and(event.within).and(free);
        (!fitting.without(beside).is_empty()).then_some(other)
    }

    /// Returns how an event of the session with this tag is served on a processor. It shares none of the counters in
    /// `shared`, which other events of the session share: a session gets one record for each overflow of a counter.
    fn served(
        &self,
        processor: ProcessorIndex,
        other_thread: Option<ProcessorIndex>,
        core_type: Option<CoreType>,
        tag: u16,
        event: &mut PlannedEvent,
        shared: CounterSet,
    ) -> Result<Served, Refusal> {
        // An event that has ended is not on a processor that is added.
        if !event.is_on(core_type) || !event.runs() {
            return Ok(Served::By(Place::Elsewhere));
        }
        if event.is_ambiguous(self.context.hal) {
            return Err(core_type_needed(event));
        }
        let (state, frequency) = match event.service {
            Service::Time { interval } => return Ok(Served::By(Place::Time { interval })),
            Service::Branches { .. } => return Ok(Served::By(Place::Branches)),
            Service::Counter { state, frequency } => (state, frequency),
        };
        let counters = self.counters_of(processor, event, state)?;
        let state = self.context.hal.with_safe_interval(processor, state.owned_by(tag));
        let within = event.within.and(self.context.hal.undisturbed(processor, other_thread, state));
        let wanted = Wanted { state, within };
        let unshared = Wanted { state, within: within.without(shared) };
        let found = self.shared(processor, unshared, frequency);
        let shared = found.map(|counter| Served::By(Place::Counter(counter)));
        Ok(shared.unwrap_or(Served::Own { wanted, counters, frequency }))
    }

    /// Returns the counters of a processor that count an event in this state, one of which the client allows. They are
    /// looked up once for all processors of a kind.
    fn counters_of(
        &self,
        processor: ProcessorIndex,
        event: &mut PlannedEvent,
        state: CounterState,
    ) -> Result<CounterSet, Refusal> {
        let hal = self.context.hal;
        let kind = hal.kind(processor);
        let counters = match event.counters {
            Some((known, counters)) if known == kind => counters,
            _ => hal.check_on(processor, state).map_err(|error| match hal.startable(hal.source(state)) {
                Err(everywhere) => Refusal::from(everywhere),
                Ok(()) => Refusal::from(error).on_processor_alone(processor),
            })?,
        };
        event.counters = Some((kind, counters));
        check_counters(counters, event).map_err(|error| error.processor(processor))?;
        Ok(counters)
    }

    /// Returns a counter that another session samples with the same settings, and that the client allows.
    fn shared(&self, processor: ProcessorIndex, Wanted { state, within }: Wanted, frequency: u32) -> Option<u8> {
        if !state.interrupt() || frequency != 0 {
            return None;
        }
        let EngineContext { sampler, hal, .. } = self.context;
        let way = |state: CounterState| state.with_owner(0).with_active(false).with_alternate(false);
        let same = |other: CounterState| !other.is_free() && other.owner() != state.owner() && way(other) == way(state);
        let mut found = hal.cpu_counters(processor).counters(same).and(within).iter();
        found.find(|counter| !sampler.is_moved(processor, *counter))
    }

    /// Returns a subscriber number that no session uses.
    fn free_place(&self) -> Result<Subscriber, Refusal> {
        let taken = |place: &Subscriber| self.others.iter().any(|session| session.subscriber() == Some(*place));
        (0..MAX_SAMPLERS).map(Subscriber).find(|place| !taken(place)).ok_or(
            Refusal::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::TooManySessions).detail(u64::from(MAX_SAMPLERS), 0),
        )
    }

    fn detached_with(&self, wanted: &PlannedEvent) -> Option<&Session> {
        let same = |event: &PlannedEvent| {
            event.is_running(EventFilter::of_source(wanted.requested.source))
                && (event.modes, event.requested.core_type) == (wanted.modes, wanted.requested.core_type)
                && event.requested.extra == wanted.requested.extra
        };
        let detached = |session: &&Session| session.owner.is_none() && session.thread_profiling == ThreadProfiling::No;
        self.others.iter().filter(detached).find(|session| session.events.iter().any(same))
    }

    /// Checks the core type of an event against those of the session's processors. An event that is not the same on all
    /// core types gets the core type of the processors if they have the same.
    fn choose_core_type(&self, event: &mut PlannedEvent, processors: &[ProcessorIndex]) -> Result<(), Refusal> {
        let of_processors = |core_type: &CoreType| {
            processors.iter().any(|processor| self.context.hal.core_type(*processor) == Some(*core_type))
        };
        let mut found = CoreType::ALL.into_iter().filter(of_processors);
        match CoreType::from_number(event.requested.core_type) {
            Some(core_type) if !of_processors(&core_type) => {
                let types = found.fold(0, |types, other| types | u64::from(other.number()));
                Err(no_such_core_type(event.requested.source, core_type.number(), types))
            }
            None if event.is_ambiguous(self.context.hal) => {
                let core_type = found.next();
                if found.next().is_some() {
                    return Err(core_type_needed(event));
                }
                event.requested.core_type = core_type.map_or(0, CoreType::number);
                Ok(())
            }
            Some(_) | None => Ok(()),
        }
    }

    fn free_tag(&self) -> Result<u16, Refusal> {
        tag::lowest_free(self.others.iter().map(|session| session.tag)).ok_or(
            Refusal::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::TooManySessions)
                .detail(u64::from(tag::MAX_SESSIONS), 0),
        )
    }
}

/// Returns the refusal of an event without a processor of its core type. `types` are the core types that there are, 0
/// on a machine that is not a hybrid.
pub fn no_such_core_type(source: u64, core_type: u32, types: u64) -> Refusal {
    invalid(ErrorCode::NoSuchCoreType, core_type.into()).detail(core_type.into(), types).source(source)
}

/// Returns the refusal of an event that is not the same on both core types.
fn core_type_needed(event: &PlannedEvent) -> Refusal {
    let types = CoreType::ALL.into_iter().fold(0, |types, core_type| types | u64::from(core_type.number()));
    invalid(ErrorCode::CoreTypeNeeded, types).source(event.requested.source)
}

/// Returns the refusal of a group of `members` events, of which `part`, a mask, fits on the counters.
fn group_too_large(source: u64, processor: ProcessorIndex, members: u64, part: u64) -> Refusal {
    Refusal::new(STATUS_INSUFFICIENT_RESOURCES, ErrorCode::GroupTooLarge)
        .source(source)
        .processor(processor)
        .detail(members, part)
}

/// Checks that the client allows one of the counters that can count the event.
fn check_counters(there: CounterSet, event: &PlannedEvent) -> Result<(), Refusal> {
    if there.is_empty() || !there.and(event.within).is_empty() {
        return Ok(());
    }
    let [there, asked] = [there, event.within].map(|counters| u64::from(counters.bits()));
    Err(invalid(ErrorCode::BadCounters, 0).source(event.requested.source).detail(there, asked))
}

/// Adds what serves the next event of a processor.
#[inline(never)] // its caller would have stack for the count too
fn add_place(places: &mut Vec<(Place, Count)>, place: Place) -> Result<(), Refusal> {
    places.try_push((place, Count::default()))
}

/// Adds to the session the rotation of the events of a processor that were placed in rounds, if there are any.
fn add_rotation(session: &mut Session, processor: ProcessorIndex, own: &[Counted]) -> Result<(), Refusal> {
    let Some(duration) = session.round.filter(|_| own.iter().any(|own| own.placed.round.is_some())) else {
        return Ok(());
    };
    let turns = own.iter().filter_map(|Counted { event, wanted, placed, .. }| {
        let (event, counter, state) = (*event, placed.counter, wanted.state);
        Some(TurnCount::new(Turn { event, round: placed.round?, counter, state }))
    });
    let rotation = Rotation::new(session.tag, duration, try_collect(turns, own.len())?);
    let slot = Slot::empty();
    // The slot is empty.
    let _ = slot.try_put(Boxed::new(rotation).ok_or(NO_MEMORY)?);
    session.rotations.try_push((processor, slot))
}

fn reserve<T>(items: &mut Vec<T>, more: usize) -> Result<(), Refusal> {
    items.try_reserve(more).map_err(|_| NO_MEMORY)
}
