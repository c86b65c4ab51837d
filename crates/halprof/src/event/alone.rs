//! Events beside which no other may have a general counter, by the facts of their maker.

use protocol::{BRANCHES, Event, EventRequest};
use thiserror::Error;

use crate::error_kind::ErrorKind;
use crate::event::vendor_event;
use crate::source::Sources;

/// An event that must run alone, beside another.
#[derive(Debug, Error)]
#[error("{name} and {other} cannot be counted together")]
pub struct TogetherError {
    name: String,
    other: String,
    #[source]
    cause: Alone,
}

/// Why two events cannot be counted together.
#[derive(Debug, Error)]
#[error("while {0} runs, no other event may have a general counter (TakenAlone in Intel's event files)")]
struct Alone(String);

impl TogetherError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::UnsupportedSource
    }

    /// Returns what the user can do about it, if anything.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        Some("two commands; instructions and cycles of fixed counters can run beside it".to_owned())
    }
}

/// Checks that no event of a session has a general counter beside one that must be alone there.
///
/// # Errors
/// If one has.
pub fn check(events: &[EventRequest], sources: &Sources) -> Result<(), TogetherError> {
    let name = |request: &EventRequest| sources.word_of(&request.event);
    let shares_cores = |one: u32, other: u32| one == other || one == 0 || other == 0;
    for (index, event) in events.iter().enumerate().filter(|(_, request)| sources.is_alone(&request.event)) {
        let other = events.iter().enumerate().find(|(number, other)| {
            *number != index
                && has_general_counter(&other.event)
                && shares_cores(event.event.core_type, other.event.core_type)
        });
        if let Some((_, other)) = other {
            let name_of_event = name(event);
            return Err(TogetherError { other: name(other), cause: Alone(name_of_event.clone()), name: name_of_event });
        }
    }
    Ok(())
}

/// Returns whether an event takes a general counter: not time, branches, or what a fixed counter counts.
fn has_general_counter(event: &Event) -> bool {
    event.source != pmu::Source::TIME.0
        && event.source != BRANCHES
        && !vendor_event::has_fixed_counter(pmu::Source(event.source))
}
