//! Sessions and the events that they count.

use std::fmt;

use pmu::Source;
use protocol::{Event, SessionEvent, flags};
use serde::Serialize;

use crate::core_types;
use crate::event;
use crate::source::Sources;

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct RunningEvent {
    /// KPROFILE_SOURCE; `None` for an event that the HAL has no number for.
    pub id: Option<u32>,
    /// Name of the source, with the core type if the event has one.
    pub name: String,
    /// Core type of the processors on which it is counted, if it is not counted on all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_type: Option<String>,
    /// `u`, `k` or `uk`.
    pub modes: &'static str,
    /// Number of processors on which it runs.
    pub processors: u32,
    /// First of these processors.
    pub first_processor: u32,
    #[serde(skip)]
    label: String,
}

/// A session and the process that started it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct RunningSession {
    /// Number of the session.
    #[serde(rename = "session")]
    pub number: u64,
    /// The process that started it.
    pub process: u32,
    /// Whether the session continues when the process exits.
    pub detached: bool,
    /// Whether it stops when another session needs what it uses.
    #[serde(skip)]
    pub yields: bool,
    /// Events of the session.
    pub events: Vec<RunningEvent>,
}

/// Groups events by session, in the order of the driver's reply.
pub fn by_session(session_events: &[SessionEvent], sources: &Sources) -> Vec<RunningSession> {
    let mut sessions: Vec<RunningSession> = Vec::new();
    for session_event in session_events {
        let Event { source, core_type, .. } = session_event.event;
        let name = sources.event_name(&session_event.event);
        let event = RunningEvent {
            id: Source(source).number(),
            label: format!("{name}{}", event::suffix(session_event.modes)),
            name,
            core_type: (core_type != 0).then(|| core_types::name(core_type)),
            modes: event::mode_letters(session_event.modes),
            processors: session_event.processors,
            first_processor: session_event.first_processor,
        };
        match sessions.iter_mut().find(|session| session.number == session_event.session) {
            Some(session) => session.events.push(event),
            None => sessions.push(RunningSession {
                number: session_event.session,
                process: session_event.process,
                detached: session_event.flags & flags::DETACHED != 0,
                yields: session_event.flags & flags::YIELDS != 0,
                events: vec![event],
            }),
        }
    }
    sessions
}

impl fmt::Display for RunningSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, process, .. } = self;
        let detached = if self.detached { ", detached" } else { "" };
        let yields = if self.yields { ", yields" } else { "" };
        let labels: Vec<&str> = self.events.iter().map(|event| event.label.as_str()).collect();
        write!(f, "session {number} (process {process}{detached}{yields}): {}", labels.join(", "))
    }
}
