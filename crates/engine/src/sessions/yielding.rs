//! Sessions that yield: they stop when another session needs what they use.
//!
//! A session that has yielded keeps its final counts until its client stops it. The client learns of it from a read.

use super::Sessions;
use super::addressed::Addressed;
use crate::event::{EventFilter, EventState, PlannedEvent};
use crate::platform::{EngineContext, Platform};
use crate::reply::Reply;
use crate::session::Session;

impl Sessions {
    /// Stops every session that yields, except for those that have done so.
    #[inline(never)]
    pub(super) fn yield_counters<M: Platform>(&mut self, context: EngineContext<'_, M>) {
        for session in self.all.iter_mut().filter(|session| session.would_yield()) {
            let running = session.events.iter_mut().filter(|event| event.runs());
            running.for_each(|event| event.state = EventState::Yielding);
        }
        self.stop_those(Addressed::Yielding, EventFilter::ALL, context, &mut Reply::over(&mut []));
        let yielded = self.all.iter_mut().filter(|session| session.has_untaken_counts());
        yielded.for_each(|session| session.yielded = true);
    }

    /// Writes the final counts of the addressed events of sessions that have yielded, and forgets them.
    pub(super) fn take_yielded<M: Platform>(
        &mut self,
        addressed: Addressed,
        events: EventFilter,
        context: EngineContext<'_, M>,
        reply: &mut Reply<'_>,
    ) {
        for session in self.all.iter_mut().filter(|session| addressed.has(session) && session.has_untaken_counts()) {
            session.write_counts(events, context.sampler, reply);
            session.events.iter_mut().filter(|event| event.has_count(events)).for_each(PlannedEvent::stop);
        }
        self.all.retain(Session::is_kept);
    }
}

impl Session {
    /// Returns whether it yields, and has not done so.
    pub(super) fn would_yield(&self) -> bool {
        self.yields && self.has(EventFilter::ALL)
    }

    /// Returns whether it has yielded, and its client has not taken its counts.
    pub(super) fn has_untaken_counts(&self) -> bool {
        self.events.iter().any(|event| event.state == EventState::Yielded)
    }

    /// Returns whether it runs, or has counts or samples that its client has not taken.
    pub(super) fn is_kept(&self) -> bool {
        self.has(EventFilter::ALL) || self.has_untaken_counts() || self.rings.is_some()
    }
}
