//! Start and end of sessions as events for Event Tracing for Windows.

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
        match source {
            Ok(known) if !known.is_empty() => name.push(known),
            _ => name.push_fields(event),
        }
        name
    }

    fn push_fields(&mut self, event: &PlannedEvent) {
        match Source(event.requested.source).raw() {
            Some(raw) => {
                self.push("cpu/event=");
                self.push_number(raw.event().into(), 1);
                self.push(",umask=");
                self.push_number(raw.umask().into(), 1);
                self.push("/");
            }
            // As `Source` is displayed.
            None => self.push_number(event.requested.source, 2),
        }
    }

    /// Appends a text, as far as it fits.
    fn push(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.push_byte(byte));
    }

    fn push_byte(&mut self, byte: u8) {
        if let Some(room) = self.bytes.get_mut(self.length) {
            *room = byte;
            self.length += 1;
        }
    }

    /// Appends a number in hexadecimal digits, `least` at least. The formatting code of `core` would add 2 KB to the
    /// driver.
    fn push_number(&mut self, number: u64, least: u32) {
        self.push("0x");
        let digits = (u64::BITS - number.leading_zeros()).div_ceil(4).max(least);
        for place in (0..digits).rev() {
            let digit = (number >> (4 * place) & 0xF) as u8;
            self.push_byte(if digit < 10 { b'0' + digit } else { b'a' + digit - 10 });
        }
    }

    fn as_str(&self) -> &str {
        self.bytes.get(..self.length).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
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
