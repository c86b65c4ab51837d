//! All sessions: starting, reading and stopping them, on every processor at once.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use profile::Source;
use profile::hal::information::HAL_PROFILE_SOURCE_INTERRUPT_HANDLER;
use protocol::status::{STATUS_NOT_FOUND, STATUS_NOT_SUPPORTED};
use protocol::{ALL_SOURCES, Cause, DETACHED, EventRequest, StartHeader};

use crate::clients::ClientId;
use crate::machine::{Ground, Machine};
use crate::plan::{Applicant, NO_MEMORY, Planner};
use crate::reply::{Refusal, Reply};
use crate::rings::Account;
use crate::session::Session;

/// Who registers the interrupt handler: the number of Windows' System process.
const SYSTEM: u64 = 4;

/// All sessions.
#[derive(Debug, Default)]
pub struct Sessions {
    all: Vec<Session>,
    last_number: u64,
    /// The processors' counters were initialized, and have to be released.
    initialized: bool,
    /// The timers run.
    timed: bool,
    /// The interrupt is ours.
    sampling: bool,
    /// What became of the samples of sessions that are gone, and how many were delivered in all.
    account: Account,
}

impl Sessions {
    /// How many sessions run.
    pub fn running(&self) -> usize {
        self.all.iter().filter(|session| session.has(ALL_SOURCES)).count()
    }

    /// What became of all samples.
    pub fn account(&self) -> Account {
        self.all.iter().filter_map(|session| session.rings.as_ref()).fold(self.account, |sum, rings| {
            let Account { lost, throttled, .. } = rings.account();
            Account { lost: sum.lost + lost, throttled: sum.throttled + throttled, ..sum }
        })
    }

    /// On how many processors a source runs, in all sessions.
    pub fn processors_running(&self, source: u32) -> usize {
        self.all.iter().filter(|session| session.has(source)).map(|session| session.processors.len()).sum()
    }

    /// Starts all of `events`, or none. Answers the session's number; refused for want of a counter, it
    /// tells who holds them.
    pub fn start<M: Machine>(
        &mut self,
        applicant: Applicant,
        header: &StartHeader,
        events: &[EventRequest],
        ground: Ground<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<u64, Refusal> {
        self.all.try_reserve(1).map_err(|_| NO_MEMORY)?;
        let planner = Planner { ground, others: &self.all };
        let session = planner.plan(self.last_number + 1, applicant, header, events, reply)?;
        if let Err(refusal) = self.prepare(&session, ground) {
            session.give_back(ground.hal);
            self.release_unused(ground);
            return Err(refusal);
        }
        let Ground { machine, sampler, .. } = ground;
        machine.on_each_processor(&|processor, cpu| session.begin(cpu, processor, sampler));
        self.last_number = session.number;
        self.all.push(session); // its place was reserved above
        self.set_budget(ground);
        Ok(self.last_number)
    }

    /// Initializes the counters for the first session that takes some, starts the timers for the first that takes
    /// those, and takes the interrupt for the first that samples. What is not used after a refusal is still to be
    /// released.
    fn prepare<M: Machine>(&mut self, session: &Session, ground: Ground<'_, M>) -> Result<(), Refusal> {
        let Ground { machine, hal, sampler } = ground;
        if session.uses(false) && !self.initialized {
            self.initialized = true;
            let idle = AtomicU32::new(u32::MAX);
            machine.on_each_processor(&|processor, cpu| {
                if !hal.initialize(cpu, processor) {
                    idle.fetch_min(processor, Ordering::Relaxed);
                }
            });
            let idle = idle.into_inner();
            if idle != u32::MAX {
                return Err(Refusal::new(STATUS_NOT_SUPPORTED, Cause::CountersDoNotWork).processor(idle));
            }
        }
        if session.uses(true) && !self.timed {
            let interval = hal.source_information(Source::TIME)?.interval;
            self.timed = machine.start_timers(interval);
            if !self.timed {
                return Err(NO_MEMORY);
            }
        }
        if session.rings.is_some() && !self.sampling {
            let handler = machine
                .begin_sampling(sampler)
                .map_err(|status| Refusal::new(status, Cause::HandlerRefused).detail(u64::from(status), 0))?;
            self.sampling = true;
            hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &handler.get().to_le_bytes(), SYSTEM)?;
        }
        Ok(())
    }

    /// Gives back what no session uses any more: first the registers, then the interrupt, which nothing raises by then.
    fn release_unused<M: Machine>(&mut self, Ground { machine, hal, .. }: Ground<'_, M>) {
        if self.initialized && !self.all.iter().any(|session| session.uses(false)) {
            machine.on_each_processor(&|processor, cpu| hal.release(cpu, processor));
            self.initialized = false;
        }
        if self.sampling && !self.all.iter().any(|session| session.subscriber().is_some()) {
            // The slot is ours.
            let _ = hal.set_system_information(HAL_PROFILE_SOURCE_INTERRUPT_HANDLER, &[0; 8], SYSTEM);
            machine.end_sampling();
            self.sampling = false;
        }
        if self.timed && !self.all.iter().any(|session| session.uses(true)) {
            machine.stop_timers();
            self.timed = false;
        }
    }

    /// The budget of the most modest of the sessions that sample.
    fn set_budget<M>(&self, Ground { sampler, .. }: Ground<'_, M>) {
        let sampling = self.all.iter().filter(|session| session.subscriber().is_some());
        if let Some(budget) = sampling.filter_map(|session| Some(session.rings.as_ref()?.budget)).min() {
            sampler.set_budget(budget);
        }
    }

    fn find(&self, number: u64, client: ClientId) -> Result<(), Refusal> {
        let found = number == DETACHED || self.all.iter().any(|session| session.is_meant(number, client));
        let refusal = Refusal::new(STATUS_NOT_FOUND, Cause::NoSuchSession).detail(number, 0);
        if found { Ok(()) } else { Err(refusal) }
    }

    /// Tells what the running events of the sessions meant have counted so far.
    pub fn read<M: Machine>(
        &self,
        number: u64,
        client: ClientId,
        ground: Ground<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        self.find(number, client)?;
        let meant = |session: &Session| session.is_meant(number, client);
        self.update(meant, ground);
        let now = ground.machine.now();
        for session in self.all.iter().filter(|session| meant(session)) {
            session.read_timers(ALL_SOURCES, ground.machine);
            session.tell_counts(now, ALL_SOURCES, reply);
        }
        Ok(())
    }

    /// Brings the counts of all sessions up to date.
    pub fn follow<M: Machine>(&self, ground: Ground<'_, M>) {
        self.update(|_| true, ground);
    }

    fn update<M: Machine>(&self, meant: impl Fn(&Session) -> bool + Sync, Ground { machine, hal, .. }: Ground<'_, M>) {
        if !self.all.iter().any(|session| session.uses(false) && meant(session)) {
            return;
        }
        machine.on_each_processor(&|processor, cpu| {
            for session in self.all.iter().filter(|session| meant(session)) {
                for (counter, count) in session.counting(processor, ALL_SOURCES) {
                    count.update(hal.count(cpu, processor, counter));
                }
            }
        });
    }

    /// Stops a source (or all) of the sessions meant, and tells the final counts.
    pub fn stop<M: Machine>(
        &mut self,
        number: u64,
        source: u32,
        client: ClientId,
        ground: Ground<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        self.find(number, client)?;
        let meant = |session: &Session| session.is_meant(number, client);
        if !self.all.iter().any(|session| meant(session) && session.has(source)) && source != ALL_SOURCES {
            return Err(Refusal::new(STATUS_NOT_FOUND, Cause::NotStarted).source(source).detail(number, 0));
        }
        self.stop_those(meant, source, ground, reply);
        Ok(())
    }

    /// Stops every session of a handle.
    pub fn stop_all_of<M: Machine>(&mut self, client: ClientId, ground: Ground<'_, M>) {
        let reply = &mut Reply::over(&mut []);
        self.stop_those(|session| session.owner == Some(client), ALL_SOURCES, ground, reply);
        self.forget(|session| session.owner == Some(client));
    }

    /// Stops every session there is.
    pub fn stop_every<M: Machine>(&mut self, ground: Ground<'_, M>) {
        self.stop_those(|_| true, ALL_SOURCES, ground, &mut Reply::over(&mut []));
        self.forget(|_| true);
    }

    fn stop_those<M: Machine>(
        &mut self,
        meant: impl Fn(&Session) -> bool + Sync,
        source: u32,
        ground: Ground<'_, M>,
        reply: &mut Reply<'_>,
    ) {
        // One that has stopped already may have left its place at the desks to another.
        let meant = |session: &Session| meant(session) && session.has(source);
        if !self.all.iter().any(meant) {
            return;
        }
        let Ground { machine, sampler, .. } = ground;
        let sessions = &self.all;
        let tag =
            |place| sessions.iter().find(|session| session.subscriber() == Some(place)).map(|session| session.tag);
        machine.on_each_processor(&|processor, cpu| {
            for session in sessions.iter().filter(|session| meant(session)) {
                session.end(cpu, processor, source, sampler, tag);
            }
        });
        let now = machine.now();
        for session in self.all.iter_mut().filter(|session| meant(session)) {
            session.read_timers(source, machine);
            session.tell_counts(now, source, reply);
            session.free(source, sampler);
        }
        // Of what was sampled the last has still to be fetched.
        self.all.retain(|session| session.has(ALL_SOURCES) || session.rings.is_some());
        self.set_budget(ground);
        self.release_unused(ground);
    }

    /// Tells samples of a session, unless it is better to wait for more of them; answers whether it told.
    pub fn samples<M: Machine>(
        &mut self,
        number: u64,
        client: ClientId,
        may_wait: bool,
        machine: &M,
        reply: &mut Reply<'_>,
    ) -> Result<bool, Refusal> {
        self.find(number, client)?;
        let of_session = |session: &&mut Session| session.number == number && session.is_meant(number, client);
        let session = self.all.iter_mut().find(of_session);
        let nothing = Refusal::new(STATUS_NOT_SUPPORTED, Cause::NothingSampled).detail(number, 0);
        let session = session.filter(|session| session.rings.is_some()).ok_or(nothing)?;
        let stopped = !session.has(ALL_SOURCES);
        let Some(rings) = &mut session.rings else { return Err(nothing) };
        if may_wait && !stopped && !rings.are_half_full() {
            return Ok(false);
        }
        self.account.delivered += rings.tell(machine.clock(), reply);
        if stopped && rings.are_empty() {
            reply.set_detail(1, 0);
            self.forget(|session| session.number == number);
        }
        Ok(true)
    }

    /// Ends the account of sessions that have stopped.
    fn forget(&mut self, gone: impl Fn(&Session) -> bool) {
        for rings in self.all.iter().filter(|session| gone(session)).filter_map(|session| session.rings.as_ref()) {
            let Account { lost, throttled, discarded, .. } = rings.account();
            self.account.lost += lost;
            self.account.throttled += throttled;
            self.account.discarded += discarded;
        }
        self.all.retain(|session| !gone(session));
    }

    /// Tells who holds which counters.
    pub fn tell_holders(&self, reply: &mut Reply<'_>) {
        self.all.iter().for_each(|session| session.tell_holders(reply));
    }
}
