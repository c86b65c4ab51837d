//! Who holds which counters.

use std::fmt;

use protocol::{SessionEvent, flags};
use serde::Serialize;

use crate::event;
use crate::source::Sources;

/// One event of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldEvent {
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
pub struct Session {
    /// Its number.
    #[serde(rename = "session")]
    pub number: u64,
    /// The process that started it.
    pub process: u32,
    /// Whether it outlives that process.
    pub detached: bool,
    /// What it counts.
    pub events: Vec<HeldEvent>,
}

/// The holders by session, in the order in which the driver names them.
pub fn sessions(holders: &[SessionEvent], sources: &Sources) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    for holder in holders {
        let name = sources.name(holder.source);
        let event = HeldEvent {
            id: holder.source,
            label: format!("{name}{}", event::suffix(holder.modes)),
            name,
            modes: event::letters(holder.modes),
            processors: holder.processors,
            first_processor: holder.first_processor,
        };
        match sessions.iter_mut().find(|session| session.number == holder.session) {
            Some(session) => session.events.push(event),
            None => sessions.push(Session {
                number: holder.session,
                process: holder.process,
                detached: holder.flags & flags::DETACHED != 0,
                events: vec![event],
            }),
        }
    }
    sessions
}

impl fmt::Display for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, process, .. } = self;
        let detached = if self.detached { ", detached" } else { "" };
        let labels: Vec<&str> = self.events.iter().map(|event| event.label.as_str()).collect();
        write!(f, "session {number} (process {process}{detached}): {}", labels.join(", "))
    }
}
