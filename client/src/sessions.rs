//! Who holds which counters.

use std::fmt;

use protocol::{Holder, flags};
use serde::Serialize;

use crate::event;
use crate::source::Sources;

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningEvent {
    /// KPROFILE_SOURCE.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// `u`, `k` or `uk`.
    pub modes: &'static str,
    /// On how many processors it runs.
    pub processors: u32,
    /// The first of them.
    pub first_processor: u32,
    #[serde(skip)]
    label: String,
}

/// A session and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningSession {
    /// Its number.
    #[serde(rename = "session")]
    pub number: u64,
    /// The process that started it.
    pub process: u32,
    /// Whether it outlives that process.
    pub detached: bool,
    /// What it counts.
    pub events: Vec<RunningEvent>,
}

/// The holders by session, in the order in which the driver names them.
pub fn by_session(session_events: &[Holder], sources: &Sources) -> Vec<RunningSession> {
    let mut sessions: Vec<RunningSession> = Vec::new();
    for session_event in session_events {
        let name = sources.name(session_event.source);
        let event = RunningEvent {
            id: session_event.source,
            label: format!("{name}{}", event::suffix(session_event.modes)),
            name,
            modes: event::letters(session_event.modes),
            processors: session_event.processors,
            first_processor: session_event.first_processor,
        };
        match sessions.iter_mut().find(|session| session.number == session_event.session) {
            Some(session) => session.events.push(event),
            None => sessions.push(RunningSession {
                number: session_event.session,
                process: session_event.process,
                detached: session_event.flags & flags::DETACHED != 0,
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
        let labels: Vec<&str> = self.events.iter().map(|event| event.label.as_str()).collect();
        write!(f, "session {number} (process {process}{detached}): {}", labels.join(", "))
    }
}
