//! All sessions: start, read and stop on their processors.

mod added;
mod addressed;
mod movement;
mod threads;
mod yielding;

use alloc::vec::Vec;
use core::mem;

use pmu::{Cpu, CurrentCpu, ProcessorIndex};
use protocol::status::{STATUS_NOT_FOUND, STATUS_NOT_SUPPORTED};
use protocol::{
    AreaRequest, DETACHED, ErrorCode, EventRequest, GroupReply, GroupRequest, RegistersRequest, StartHeader, flags,
};
use sample_ring::Slot;
use zerocopy::FromZeros;

use crate::clients::ClientId;
use crate::event::EventFilter;
use crate::plan::{Planner, Requester};
use crate::platform::{EngineContext, Platform};
use crate::processor_set::{set_of, set_of_all};
use crate::registers::read_registers;
use crate::reply::{Refusal, Reply, invalid};
use crate::resources::{Resources, Taken};
use crate::rings::Account;
use crate::sampler::Sampler;
use crate::session::{Session, ThreadProfiling};
use crate::session_events::{write_starts, write_stops};
use crate::time::Ticks;
use crate::try_vec::{NO_MEMORY, TryPush};
use added::AddedProcessor;
use addressed::Addressed;
use movement::{Found, try_counters};
use threads::{Kept, thread_profiling_taken};

/// All sessions, and the resources that they share.
#[derive(Debug, Default)]
pub struct Sessions {
    all: Vec<Session>,
    last_number: u64,
    resources: Resources,
    /// Samples of sessions that have ended, and the number delivered in all.
    account: Account,
}

impl Sessions {
    /// Returns the number of running sessions.
    pub fn running(&self) -> usize {
        self.all.iter().filter(|session| session.has(EventFilter::ALL)).count()
    }

    /// Returns the account of all samples.
    pub fn account(&self) -> Account {
        self.all.iter().filter_map(|session| session.rings.as_ref()).fold(self.account, |sum, rings| {
            let Account { lost, throttled, .. } = rings.account();
            Account { lost: sum.lost + lost, throttled: sum.throttled + throttled, ..sum }
        })
    }

    /// Returns on how many of these processors a source runs, summed over all sessions.
    pub fn processors_running(&self, source: u64, are_meant: impl Fn(ProcessorIndex) -> bool) -> usize {
        let runs = |session: &Session, processor: ProcessorIndex| {
            session.running(processor, EventFilter::of_source(source)).next().is_some()
        };
        let of_session = |session: &Session| {
            let meant = session.processors.iter().filter(|processor| are_meant(**processor));
            meant.filter(|processor| runs(session, **processor)).count()
        };
        self.all.iter().map(of_session).sum()
    }

    /// Starts all of `events`, or none. Returns the number of the session. If there is no free counter, the reply lists
    /// the sessions that hold the counters.
    pub fn start<M: Platform>(
        &mut self,
        requester: Requester,
        header: &StartHeader,
        events: &[EventRequest],
        context: EngineContext<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<u64, Refusal> {
        self.end_kept(context);
        // Each turn finds counters that do not work for the first time, and leaves fewer. One more turn plans without
        // those that do not count.
        let mut is_tried = false;
        self.all.try_reserve(1).map_err(|_| NO_MEMORY)?;
        let number = loop {
            // Stored before it begins, so that what has begun can always be ended. There is room.
            let session = self.plan(requester, header, events, context, reply)?;
            self.all.try_push(session)?;
            let Some(session) = self.all.last_mut() else { return Err(NO_MEMORY) };
            let number = session.number;
            let taken = self.resources.take(session, header.flags & flags::FORCE != 0, context);
            let stands = taken.and_then(|taken| match taken {
                Taken::CountersGone => Ok(false),
                Taken::All => {
                    let found = try_counters(session, context)?;
                    Ok(found == Found::Known || mem::replace(&mut is_tried, true))
                }
            });
            if let Ok(true) = stands {
                break number;
            }
            session.release(context.hal);
            self.all.pop();
            self.resources.release(&self.all, context);
            stands?;
        };
        self.last_number = number;
        self.set_budget(context);
        self.begin_last(context);
        self.configure_threads(number, context)?;
        Ok(number)
    }

    /// Starts the counters of the session that was planned last.
    #[inline(never)]
    fn begin_last<M: Platform>(&self, context: EngineContext<'_, M>) {
        let Some((session, others)) = self.all.split_last() else { return };
        let EngineContext { platform, sampler, .. } = context;
        let clock = platform.shared_clock();
        platform.on_processors(&set_of_all(&session.processors), &|current| {
            let now = clock();
            // What was disturbed before does not concern the new session, and the start removes the traces.
            sampler.repair(current, now);
            note_disturbances(others, current, sampler, now);
            session.begin(current, sampler, now);
        });
        write_starts(session, context);
    }

    /// Plans a session. If it would be refused for what other sessions use, or would have to take turns, those that
    /// yield stop first.
    #[inline(never)]
    fn plan<M: Platform>(
        &mut self,
        requester: Requester,
        header: &StartHeader,
        events: &[EventRequest],
        context: EngineContext<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<Session, Refusal> {
        let number = self.last_number + 1;
        let planned = Planner { context, others: &self.all }.plan(number, requester, header, events, reply);
        if header.flags & flags::YIELDS != 0 || !self.all.iter().any(Session::would_yield) {
            return planned;
        }
        match &planned {
            Ok(session) if session.rotations.is_empty() => return planned,
            Ok(session) => session.release(context.hal),
            Err(refusal) if refusal.is_for_want() => reply.clear(),
            Err(_) => return planned,
        }
        self.yield_counters(context);
        Planner { context, others: &self.all }.plan(number, requester, header, events, reply)
    }

    /// Sets the lowest budget of the sessions that sample.
    fn set_budget<M>(&self, EngineContext { sampler, .. }: EngineContext<'_, M>) {
        let sampling = self.all.iter().filter(|session| session.subscriber().is_some());
        if let Some(budget) = sampling.filter_map(|session| Some(session.rings.as_ref()?.budget)).min() {
            sampler.set_budget(budget);
        }
    }

    /// Extends the sessions on all processors to a processor that was added, one after the other. A session stays where
    /// it is if a resource is unavailable on the new processor.
    pub fn add_processor<M: Platform>(&mut self, processor: ProcessorIndex, context: EngineContext<'_, M>) {
        let platform = context.platform;
        let timed = platform.add_processor(processor);
        self.after_processor(platform);
        let (counts, samples) = self.resources.take_processor(processor, context);
        // There is no reply for the holders of the counters.
        let planner = Planner { context, others: &[] };
        let core_type = context.hal.core_type(processor);
        let added = AddedProcessor { processor, core_type, timed, counts, samples };
        // Threads need the same counters everywhere: no other session may take them first.
        for for_threads in [true, false] {
            let is_next = |session: &&mut Session| (session.thread_profiling != ThreadProfiling::No) == for_threads;
            for session in self.all.iter_mut().filter(is_next) {
                added.extend(session, &mut self.resources, &planner);
            }
        }
        self.end_incomplete(processor, context);
        self.resources.settle_timers(&self.all, platform);
    }

    /// Returns the state of the reservation of the counters as in [`InfoReply`](protocol::InfoReply).
    pub const fn reservation_state(&self) -> u32 {
        self.resources.reservation_state()
    }

    /// Frees the counters before a processor becomes active.
    pub fn before_processor<M: Platform>(&mut self, platform: &M) {
        self.resources.reservation().interrupt(platform);
    }

    /// Reserves the counters again when a processor is active, or was not added.
    pub fn after_processor<M: Platform>(&mut self, platform: &M) {
        self.resources.reservation().resume(platform);
    }

    fn find(&self, number: u64, client: ClientId) -> Result<(), Refusal> {
        let found = number == DETACHED || self.all.iter().any(|session| session.is_meant(number, client));
        if found { Ok(()) } else { Err(no_such_session(number)) }
    }

    /// Writes what the running events of the addressed sessions have counted so far.
    #[inline(never)]
    pub fn read<M: Platform>(
        &self,
        number: u64,
        client: ClientId,
        context: EngineContext<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        self.find(number, client)?;
        let meant = |session: &Session| session.is_meant(number, client);
        self.update(meant, false, context);
        for session in self.all.iter().filter(|session| meant(session)) {
            session.write_counts(EventFilter::ALL, context.sampler, reply);
            if session.yielded {
                reply.set_detail(1, 0);
            }
        }
        Ok(())
    }

    /// Reads the counters of a session on the processor of the request, or says why that is impossible.
    pub fn read_group<M: Platform>(
        &self,
        request: GroupRequest,
        client: ClientId,
        context: EngineContext<'_, M>,
    ) -> Result<GroupReply, Refusal> {
        let number = request.session;
        if number == DETACHED {
            return Err(no_such_session(number));
        }
        self.find(number, client)?;
        let EngineContext { platform, sampler, .. } = context;
        let processor = platform.current_processor();
        let (found, clock) = (Slot::empty(), platform.shared_clock());
        // The slot is empty.
        let _ = found.try_put(GroupReply::new_zeroed());
        context.on_awake(&[processor], |current| {
            found.try_with(|group| sampler.read_group(current, &clock, client, request, group));
        })?;
        let refusal = Refusal::new(STATUS_NOT_SUPPORTED, ErrorCode::NotReadable).processor(processor);
        // A group that was read has events.
        found.try_take().filter(|group| group.header.count != 0).ok_or(refusal.detail(number, 0))
    }

    /// Updates the counts of all sessions, repairs registers that another program changed, and frees control areas and
    /// counters that could not be freed before.
    pub fn accumulate_counts<M: Platform>(&mut self, context: EngineContext<'_, M>) {
        self.update(|_| true, true, context);
        self.end_kept(context);
        self.resources.areas().drop_unneeded(context);
        self.resources.reservation().free_again(context.platform);
    }

    fn update<M: Platform>(
        &self,
        meant: impl Fn(&Session) -> bool + Sync,
        repairs: bool,
        EngineContext { platform, sampler, .. }: EngineContext<'_, M>,
    ) {
        let counting = self.all.iter().filter(|session| meant(session)).flat_map(Session::counting_processors);
        let clock = platform.shared_clock();
        // Measured time is read without an interrupt of its processor.
        let now = clock();
        for session in self.all.iter().filter(|session| meant(session)) {
            session.processors.iter().for_each(|processor| session.note_reading(*processor, sampler, now));
        }
        platform.on_processors(&set_of(counting), &|current| {
            let now = clock();
            if repairs {
                sampler.repair(current, now);
            } else {
                sampler.compare(current, now);
            }
            sampler.update_metrics(current);
            for session in self.all.iter().filter(|session| meant(session)) {
                for (counter, count) in session.counting(current.index(), EventFilter::ALL) {
                    count.update(sampler.count(current, counter, now));
                }
                session.note_reading(current.index(), sampler, now);
            }
            note_disturbances(&self.all, current, sampler, now);
        });
    }

    /// Stops the addressed events of the addressed sessions, and writes the final counts.
    #[inline(never)]
    pub fn stop<M: Platform>(
        &mut self,
        number: u64,
        events: EventFilter,
        client: ClientId,
        context: EngineContext<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        self.find(number, client)?;
        let meant = Addressed::Requested(number, client);
        let has = |session: &Session| session.events.iter().any(|event| event.has_count(events));
        if !self.all.iter().any(|session| meant.has(session) && has(session)) && !events.is_all() {
            return Err(Refusal::new(STATUS_NOT_FOUND, ErrorCode::NotStarted).source(events.source).detail(number, 0));
        }
        if let Some(event) = self.all.iter().filter(|one| meant.has(one)).find_map(|one| one.needs(events)) {
            return Err(invalid(ErrorCode::BadCondition, 1).source(event.requested.source));
        }
        self.take_yielded(meant, events, context, reply);
        let kept = self.stop_those(meant, events, context, reply);
        kept.map_or(Ok(()), |kept| Err(thread_profiling_taken(kept.status)))
    }

    /// Stops every session of a handle.
    #[inline(never)]
    pub fn stop_all_of<M: Platform>(&mut self, client: ClientId, context: EngineContext<'_, M>) {
        let reply = &mut Reply::over(&mut []);
        let kept = self.stop_those(Addressed::Owned(client), EventFilter::ALL, context, reply);
        if let Some(kept) = kept {
            self.disown(kept.number);
        }
        self.forget(|session| session.owner == Some(client));
    }

    /// Allocates, frees or lists control areas.
    #[inline(never)]
    pub fn serve_areas<M: Platform>(
        &mut self,
        request: &AreaRequest,
        context: EngineContext<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        self.resources.areas().serve(request, context, reply)
    }

    /// Reads the registers of a processor.
    #[inline(never)]
    pub fn read_registers<M: Platform>(
        &self,
        request: RegistersRequest,
        context: EngineContext<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        read_registers(&self.resources, request, context, reply)
    }

    /// Stops every session, also one that Windows refuses to end. The driver has removed its unload routine after the
    /// first refusal, so that this is not called then.
    pub fn stop_every<M: Platform>(&mut self, context: EngineContext<'_, M>) {
        if self.release_threads(|_| true, context.platform).is_some() {
            self.all.iter_mut().for_each(|session| session.thread_profiling = ThreadProfiling::No);
        }
        self.stop_those(Addressed::Every, EventFilter::ALL, context, &mut Reply::over(&mut []));
        self.forget(|_| true);
        self.resources.areas().release_all(context);
        self.resources.reservation().free_again(context.platform);
    }

    /// Stops the addressed events of the addressed sessions, and writes their final counts. Returns the session that
    /// Windows keeps from being stopped, with the reason.
    #[inline(never)]
    fn stop_those<M: Platform>(
        &mut self,
        addressed: Addressed,
        events: EventFilter,
        context: EngineContext<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Option<Kept> {
        // A session that has stopped may have left its subscriber number to another.
        let meant = |session: &Session| addressed.has(session) && session.has(events);
        let kept = self.release_threads(meant, context.platform);
        let meant = |session: &Session| meant(session) && kept.is_none_or(|kept| session.number != kept.number);
        if !self.all.iter().any(meant) {
            return kept;
        }
        let EngineContext { platform, sampler, .. } = context;
        let sessions = &self.all;
        let tag =
            |place| sessions.iter().find(|session| session.subscriber() == Some(place)).map(|session| session.tag);
        let clock = platform.shared_clock();
        let concerned = sessions.iter().filter(|session| meant(session)).flat_map(|session| &session.processors);
        platform.on_processors(&set_of(concerned.copied()), &|current| {
            let now = clock();
            // As at a start: the stop lets the others count.
            sampler.repair(current, now);
            for session in sessions.iter().filter(|session| meant(session)) {
                session.end(current, events, sampler, now, tag);
            }
            note_disturbances(sessions, current, sampler, now);
        });
        for session in self.all.iter_mut().filter(|session| meant(session)) {
            session.write_counts(events, sampler, reply);
            write_stops(session, events, context);
            session.free(events, sampler);
        }
        self.all.retain(Session::is_kept);
        self.set_budget(context);
        self.resources.release(&self.all, context);
        kept
    }

    /// Writes samples of a session, unless it is better to wait for more. Returns whether it wrote.
    pub fn samples<M: Platform>(
        &mut self,
        number: u64,
        client: ClientId,
        may_wait: bool,
        platform: &M,
        reply: &mut Reply<'_>,
    ) -> Result<bool, Refusal> {
        self.find(number, client)?;
        let of_session = |session: &&mut Session| session.number == number && session.is_meant(number, client);
        let session = self.all.iter_mut().find(of_session);
        let nothing = Refusal::new(STATUS_NOT_SUPPORTED, ErrorCode::NothingSampled).detail(number, 0);
        let session = session.filter(|session| session.rings.is_some()).ok_or(nothing)?;
        let stopped = !session.has(EventFilter::ALL);
        let Some(rings) = &mut session.rings else { return Err(nothing) };
        if may_wait && !stopped && !rings.are_half_full() {
            return Ok(false);
        }
        self.account.delivered += rings.write(platform.clock(), reply);
        if stopped && rings.are_empty() {
            reply.set_detail(1, 0);
            self.forget(|session| session.number == number && !session.has_untaken_counts());
        }
        Ok(true)
    }

    /// Adds the accounts of sessions that have ended to the total, and removes the sessions.
    fn forget(&mut self, gone: impl Fn(&Session) -> bool) {
        for rings in self.all.iter().filter(|session| gone(session)).filter_map(|session| session.rings.as_ref()) {
            let Account { lost, throttled, discarded, .. } = rings.account();
            self.account.lost += lost;
            self.account.throttled += throttled;
            self.account.discarded += discarded;
        }
        self.all.retain(|session| !gone(session));
    }

    /// Writes the events of all sessions.
    pub fn write_sessions(&self, reply: &mut Reply<'_>) {
        self.all.iter().for_each(|session| session.write_sessions(reply));
    }
}

/// Returns the refusal for a number that addresses no session.
fn no_such_session(number: u64) -> Refusal {
    Refusal::new(STATUS_NOT_FOUND, ErrorCode::NoSuchSession).detail(number, 0)
}

/// Marks the counts of the sessions that use disturbed counters of the current processor, and updates the counts of
/// events that take turns.
///
/// # IRQL
/// PROFILE_LEVEL.
fn note_disturbances(sessions: &[Session], current: CurrentCpu<'_, impl Cpu>, sampler: &Sampler, now: Ticks) {
    // Events that take turns know which of them was disturbed.
    for session in sessions {
        session.update_turns(current, sampler, now);
    }
    sampler.take_disturbances(current, now, |counter, disturbance, time| {
        for session in sessions {
            session.note_disturbance(current.index(), counter, disturbance, time);
        }
    });
}
