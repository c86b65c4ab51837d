//! All sessions: starting, reading and stopping them, on every processor at once.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};

use profile::Source;
use protocol::status::{STATUS_NOT_FOUND, STATUS_NOT_SUPPORTED};
use protocol::{ALL_SOURCES, Cause, DETACHED, EventRequest, ProcessorSet};

use crate::clients::ClientId;
use crate::machine::{Ground, Machine};
use crate::plan::{Applicant, NO_MEMORY, Planner};
use crate::reply::{Refusal, Reply};
use crate::session::Session;

/// All sessions.
#[derive(Debug, Default)]
pub struct Sessions {
    all: Vec<Session>,
    last_number: u64,
    /// The processors' counters were initialized, and have to be released.
    initialized: bool,
}

impl Sessions {
    /// How many sessions run.
    pub fn len(&self) -> usize {
        self.all.len()
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
        wanted: &ProcessorSet,
        events: &[EventRequest],
        ground: Ground<'_, M>,
        reply: &mut Reply<'_>,
    ) -> Result<u64, Refusal> {
        self.all.try_reserve(1).map_err(|_| NO_MEMORY)?;
        let planner = Planner { ground, others: &self.all };
        let session = planner.plan(self.last_number + 1, applicant, wanted, events, reply)?;
        let Ground { machine, hal } = ground;
        if let Err(refusal) = self.prepare(&session, ground) {
            session.give_back(hal);
            return Err(refusal);
        }
        machine.on_each_processor(&|processor, cpu| {
            hal.start(cpu, processor, session.counters(processor, ALL_SOURCES));
        });
        self.last_number = session.number;
        self.all.push(session); // its place was reserved above
        Ok(self.last_number)
    }

    /// Initializes the counters for the first session that takes some, and starts the timers for the first that
    /// takes those.
    fn prepare<M: Machine>(&mut self, session: &Session, ground: Ground<'_, M>) -> Result<(), Refusal> {
        let Ground { machine, hal } = ground;
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
                self.release_unused(ground);
                return Err(NO_MEMORY);
            }
        }
        Ok(())
    }

    /// Gives back what no session uses any more.
    fn release_unused<M: Machine>(&mut self, Ground { machine, hal }: Ground<'_, M>) {
        if self.initialized && !self.all.iter().any(|session| session.uses(false)) {
            machine.on_each_processor(&|processor, cpu| hal.release(cpu, processor));
            self.initialized = false;
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

    fn update<M: Machine>(&self, meant: impl Fn(&Session) -> bool + Sync, Ground { machine, hal }: Ground<'_, M>) {
        if !self.all.iter().any(|session| session.uses(false) && meant(session)) {
            return;
        }
        machine.on_each_processor(&|processor, cpu| {
            for session in self.all.iter().filter(|session| meant(session)) {
                for (counter, count) in session.counting(processor, ALL_SOURCES) {
                    count.store(hal.count(cpu, processor, counter), Ordering::Relaxed);
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
        let meant = |session: &Session| session.is_meant(number, client) && session.has(source);
        if !self.all.iter().any(meant) && source != ALL_SOURCES {
            return Err(Refusal::new(STATUS_NOT_FOUND, Cause::NotStarted).source(source).detail(number, 0));
        }
        self.stop_those(meant, source, ground, reply);
        Ok(())
    }

    /// Stops every session of a handle.
    pub fn stop_all_of<M: Machine>(&mut self, client: ClientId, ground: Ground<'_, M>) {
        let reply = &mut Reply::over(&mut []);
        self.stop_those(|session| session.owner == Some(client), ALL_SOURCES, ground, reply);
    }

    /// Stops every session there is.
    pub fn stop_every<M: Machine>(&mut self, ground: Ground<'_, M>) {
        self.stop_those(|_| true, ALL_SOURCES, ground, &mut Reply::over(&mut []));
    }

    fn stop_those<M: Machine>(
        &mut self,
        meant: impl Fn(&Session) -> bool + Sync,
        source: u32,
        ground: Ground<'_, M>,
        reply: &mut Reply<'_>,
    ) {
        let Ground { machine, hal } = ground;
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
        self.all.retain(|session| session.has(ALL_SOURCES));
        self.release_unused(ground);
        if timed && !self.all.iter().any(|session| session.uses(true)) {
            machine.stop_timers();
        }
    }

    /// Tells who holds which counters.
    pub fn tell_holders(&self, reply: &mut Reply<'_>) {
        self.all.iter().for_each(|session| session.tell_holders(reply));
    }
}
