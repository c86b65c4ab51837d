//! Counters that do not count, or only a part, as those of some hypervisors: found before a session begins.

use pmu::state::{CounterSet, CounterState};
use pmu::{Cpu, CurrentCpu, ProcessorIndex};
use protocol::ErrorCode;
use protocol::status::STATUS_NOT_SUPPORTED;

use crate::event::EventFilter;
use crate::platform::{EngineContext, Platform};
use crate::reply::Refusal;
use crate::sampler::Hal;
use crate::session::{Needed, Place, Session, ThreadProfiling};
use crate::try_vec::try_collect;

/// What the loop shows about the counters of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing that was not known when the session was planned.
    Known,
    /// Counters that do not count, which the plan did not know.
    New,
}

/// Lets a known loop run on the counters of a session that is about to begin, and marks the counts of those that do not
/// count it.
///
/// Where one of them does not, all free counters are tried as well, so that another plan can find better ones; for
/// threads, which use a counter on all processors or on none, those of all processors. Those that did not count before
/// are always tried: the host may have been busy.
///
/// # Errors
/// [`ErrorCode::NoCounterCounts`] if no counter of any of its processors counts;
/// [`ASLEEP`](crate::suspend_time::ASLEEP).
#[inline(never)] // its stack is not in use in the rest of a start
pub(super) fn try_counters<M: Platform>(session: &Session, context: EngineContext<'_, M>) -> Result<Found, Refusal> {
    let hal = context.hal;
    if !hal.must_try_counters() {
        return Ok(Found::Known);
    }
    let counted = session.processors_with(Needed::Counter)?;
    if counted.is_empty() {
        return Ok(Found::Known);
    }
    let unsteady = || counted.iter().map(|processor| hal.tried(*processor).unsteady());
    let known = try_collect(unsteady(), counted.len())?;
    context.on_awake(&counted, |current| try_on(session, current, hal))?;
    let is_unsteady = |processor: &ProcessorIndex| session.has_unsteady(*processor, hal);
    if session.thread_profiling != ThreadProfiling::No && counted.iter().any(is_unsteady) {
        context.on_awake(&counted, |current| hal.try_counters(current, free_on(current.index(), hal)))?;
    }
    if counted.iter().all(|processor| hal.counts_nothing(*processor)) {
        let nothing = Refusal::new(STATUS_NOT_SUPPORTED, ErrorCode::NoCounterCounts);
        return Err(counted.first().map_or(nothing, |processor| nothing.processor(*processor)));
    }
    session.mark_movement(hal);
    let is_new = counted.iter().zip(known).any(|(processor, known)| {
        let own = session.held_on(*processor, hal);
        !hal.tried(*processor).unsteady().and(own).without(known).is_empty()
    });
    Ok(if is_new { Found::New } else { Found::Known })
}

/// Tries the counters of a session on the current processor.
///
/// # IRQL
/// PROFILE_LEVEL.
pub(super) fn try_on(session: &Session, current: CurrentCpu<'_, impl Cpu>, hal: &Hal) {
    let processor = current.index();
    let own = session.held_on(processor, hal);
    let free = free_on(processor, hal);
    hal.try_counters(current, own.or(hal.tried(processor).unsteady().and(free)));
    if session.has_unsteady(processor, hal) {
        hal.try_counters(current, free);
    }
}

/// Returns the counters of a processor that no session holds.
fn free_on(processor: ProcessorIndex, hal: &Hal) -> CounterSet {
    hal.cpu_counters(processor).counters(CounterState::is_free)
}

impl Session {
    /// Returns the counters of a processor that are held for the session, without those that it shares.
    fn held_on(&self, processor: ProcessorIndex, hal: &Hal) -> CounterSet {
        hal.cpu_counters(processor).counters(|state| state.owner() == self.tag && !state.upper())
    }

    /// Returns whether a counter that is held for the session on a processor did not count when it was last tried.
    fn has_unsteady(&self, processor: ProcessorIndex, hal: &Hal) -> bool {
        !hal.tried(processor).unsteady().and(self.held_on(processor, hal)).is_empty()
    }

    /// Marks the counts of counters that did not count when they were last tried.
    pub(super) fn mark_movement(&self, hal: &Hal) {
        self.processors.iter().for_each(|processor| self.mark_movement_on(*processor, hal));
    }

    /// The same on one processor.
    ///
    /// # IRQL
    /// Any.
    pub(super) fn mark_movement_on(&self, processor: ProcessorIndex, hal: &Hal) {
        for (_, place, count) in self.running(processor, EventFilter::ALL) {
            if let Place::Counter(counter) | Place::Turn(counter) = place {
                count.set_movement(hal.movement(processor, counter));
            }
        }
    }
}
