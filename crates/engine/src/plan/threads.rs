//! Sessions for Windows' thread profiling: the same counters on every processor, and nothing that samples beside them.

use pmu::ProcessorIndex;
use pmu::state::{CounterSet, CounterState};
use protocol::ErrorCode;
use protocol::status::{STATUS_DEVICE_BUSY, STATUS_NOT_SUPPORTED};

use super::Planner;
use crate::event::{PlannedEvent, Service};
use crate::platform::Platform;
use crate::reply::{Refusal, Reply};
use crate::session::{Place, Session, ThreadProfiling};

impl<M: Platform> Planner<'_, M> {
    /// Checks that a session for threads runs alone: Windows has one configuration, and the interrupt of a session that
    /// samples stops all counters meanwhile. If it does not, the reply lists the other session.
    pub(super) fn check_conflict(
        &self,
        for_threads: bool,
        events: &[PlannedEvent],
        reply: &mut Reply<'_>,
    ) -> Result<(), Refusal> {
        let samples = events.iter().any(PlannedEvent::needs_interrupt);
        let conflicts = |other: &&Session| {
            let other_for_threads = other.thread_profiling != ThreadProfiling::No;
            (for_threads && (other_for_threads || other.uses_interrupt())) || (samples && other_for_threads)
        };
        let mut found = self.others.iter().filter(conflicts).peekable();
        if found.peek().is_none() {
            return Ok(());
        }
        found.for_each(|other| other.write_sessions(reply));
        Err(Refusal::new(STATUS_DEVICE_BUSY, ErrorCode::ThreadsConflict))
    }

    /// Narrows each event to the counters that count it on all of these processors, which RDPMC reads by their index;
    /// to those that are free everywhere, if there are any.
    pub(super) fn narrow_to_common(
        &self,
        events: &mut [PlannedEvent],
        processors: &[ProcessorIndex],
    ) -> Result<(), Refusal> {
        events.iter_mut().try_for_each(|event| self.narrow(event, processors))
    }

    fn narrow(&self, event: &mut PlannedEvent, processors: &[ProcessorIndex]) -> Result<(), Refusal> {
        let hal = self.context.hal;
        let no_common = Refusal::new(STATUS_NOT_SUPPORTED, ErrorCode::NoCommonCounter).source(event.requested.source);
        let Service::Counter { state, .. } = event.service else { return Err(no_common) };
        let (mut common, mut free) = (event.within, CounterSet::first(CounterSet::MOST));
        let mut unsteady = CounterSet::NONE;
        for processor in processors.iter().copied() {
            if !event.is_on(hal.core_type(processor)) {
                return Err(no_common.processor(processor));
            }
            let there = self.counters_of(processor, event, state)?;
            common = common.and(there).and(hal.interface_of(processor).thread_counters());
            let is_free = hal.cpu_counters(processor).counters(CounterState::is_free);
            // It is on every processor, so that no counter is left that the other thread of a core uses.
            free = free.and(is_free);
            unsteady = unsteady.or(hal.tried(processor).unsteady());
        }
        if common.is_empty() {
            return Err(no_common);
        }
        // Without one, the placement finds the processor on which it fails.
        let narrowed = [common.and(free).without(unsteady), common.and(free)];
        event.within = narrowed.into_iter().find(|counters| !counters.is_empty()).unwrap_or(common);
        Ok(())
    }
}

impl Session {
    /// Narrows each event to the counter that it has on the first processor, before the session is extended to others.
    pub(super) fn keep_counters(&mut self) {
        for (event, (place, _)) in self.events.iter_mut().zip(&self.places) {
            if let Place::Counter(counter) = *place {
                event.within = CounterSet::NONE.with(counter);
            }
        }
    }
}
