//! Start and end of sessions as events for Event Tracing for Windows.

use core::fmt::{self, Write};

use pmu::Source;
use protocol::trace::{SessionStart, SessionStop};

use crate::event::{EventFilter, PlannedEvent, Service};
use crate::platform::{EngineContext, Platform};
use crate::sampler::{Hal, TraceEvent};
use crate::session::Session;

/// Maximum length of a name in bytes.
const NAME_LENGTH: usize = 64;

/// The name of an event, cut at [`NAME_LENGTH`].
struct Name {
    bytes: [u8; NAME_LENGTH],
    length: usize,
}

impl Name {
    /// Returns the name of a source in the HAL, or the fields of an event that has none.
    fn of(event: &PlannedEvent, hal: &Hal) -> Self {
        let mut name = Self { bytes: [0; NAME_LENGTH], length: 0 };
        let source = hal.source_information(Source(event.requested.source)).map(|found| found.source.name);
        // A name that does not fit is cut.
        let _ = match source {
            Ok(known) if !known.is_empty() => name.write_str(known),
            _ => name.write_fields(event),
        };
        name
    }

    fn write_fields(&mut self, event: &PlannedEvent) -> fmt::Result {
        match Source(event.requested.source).raw() {
            Some(raw) => write!(self, "cpu/event={:#x},umask={:#x}/", raw.event(), raw.umask()),
            // As `Source` is displayed, without a call of the formatting code from itself: its stack would have no
            // bound.
            None => write!(self, "{:#04x}", event.requested.source),
        }
    }

    fn as_str(&self) -> &str {
        self.bytes.get(..self.length).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl Write for Name {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            *self.bytes.get_mut(self.length).ok_or(fmt::Error)? = byte;
            self.length += 1;
        }
        Ok(())
    }
}

/// Writes an event for each event that a session starts.
///
/// # IRQL
/// At most APC_LEVEL.
pub fn write_starts<M: Platform>(session: &Session, context: EngineContext<'_, M>) {
    if !context.platform.wants_session_events() {
        return;
    }
    for event in &session.events {
        let start = SessionStart {
            session: session.number,
            event: event.requested,
            interval: interval(event),
            modes: event.modes,
        };
        context.platform.write_event(&TraceEvent::SessionStart(start, Name::of(event, context.hal).as_str()));
    }
}

/// Writes an event for each addressed event that runs, which is about to end.
///
/// # IRQL
/// At most APC_LEVEL.
pub fn write_stops<M: Platform>(session: &Session, filter: EventFilter, context: EngineContext<'_, M>) {
    if !context.platform.wants_session_events() {
        return;
    }
    for (index, event) in session.events.iter().enumerate().filter(|(_, event)| event.is_running(filter)) {
        let numbers = session.numbers_of(index);
        let stop = SessionStop {
            session: session.number,
            event: event.requested,
            samples: numbers.samples,
            lost: numbers.lost,
            throttled: numbers.throttled,
        };
        context.platform.write_event(&TraceEvent::SessionStop(stop));
    }
}

/// Returns the events between two samples, or 0 if the event is only counted.
const fn interval(event: &PlannedEvent) -> u32 {
    if !event.sampled {
        return 0;
    }
    match event.service {
        Service::Time { interval } => interval,
        Service::Counter { state, .. } => state.interval(),
        Service::Branches { before } => before,
    }
}
