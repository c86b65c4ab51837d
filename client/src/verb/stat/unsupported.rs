//! Events that the machine does not count: a row without a count, and the reason below the table.

use counts::requested_metrics::why_refused;
use halprof::Refusal;
use serde::Serialize;
use user_error::exit::Exit;
use user_error::{Error, UserError, why};

/// What stands instead of a count, as in perf.
pub const NOT_SUPPORTED: &str = "<not supported>";

/// An event that the machine does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unsupported {
    /// The event, as the user named it.
    pub name: String,
    /// Why it is not counted.
    reason: String,
    /// What makes it countable, if anything.
    remedy: Option<String>,
}

impl Unsupported {
    /// Returns the event of an error that is about this event alone.
    ///
    /// # Errors
    /// The same error if it is another, or if the user wants every event or nothing.
    pub fn of(name: String, error: Error, strict: bool) -> Result<Self, Error> {
        if strict || error.exit() != Exit::UnsupportedSource {
            return Err(error);
        }
        Ok(Self { name, reason: why(&error), remedy: error.remedy() })
    }

    /// Returns the event of a refusal that concerns it.
    pub fn refused(name: String, refusal: &Refusal) -> Self {
        Self { name, reason: why_refused(refusal), remedy: UserError::remedy(refusal) }
    }
}

/// Returns the sentences about the events, one for those with the same reason.
pub fn notes(events: &[Unsupported]) -> Vec<String> {
    let mut notes: Vec<(&Unsupported, Vec<&str>)> = Vec::new();
    for event in events {
        let same =
            |other: &&mut (&Unsupported, _)| (&other.0.reason, &other.0.remedy) == (&event.reason, &event.remedy);
        match notes.iter_mut().find(same) {
            Some((_, names)) => names.push(&event.name),
            None => notes.push((event, vec![&event.name])),
        }
    }
    let note = |(Unsupported { reason, remedy, .. }, names): (&Unsupported, Vec<&str>)| {
        let remedy = remedy.as_ref().map_or_else(String::new, |remedy| format!("\n  try: {remedy}"));
        format!("{NOT_SUPPORTED}: {}\n  because: {reason}{remedy}", names.join(", "))
    };
    notes.into_iter().map(note).collect()
}
