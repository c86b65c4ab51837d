//! Conditions of sampled events: `record --when`.

use events::condition::{Condition, ConditionError, Ratio};
use halprof::Driver;
use halprof::event::{find, vendor_event};
use pmu::{CoreType, Source};
use protocol::{Event, EventRequest, ProcessorSet, event_flags, modes};
use thiserror::Error as ThisError;

use crate::requested_metrics::{metrics_of_cores, source};
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Why samples cannot have a condition.
#[derive(Debug, ThisError)]
pub enum UndecidedError {
    /// The metrics of the machine leave no ratio of two events.
    #[error(transparent)]
    NoRatio(#[from] ConditionError),
    /// The event is sampled by time.
    #[error("{0} is sampled by a timer: no counter decides on its samples")]
    Time(String),
    /// The processor records the event.
    #[error("the processor records {0} itself: no interrupt decides on its samples")]
    Precise(String),
    /// An event of the ratio is another one on each core type, and the sampled event is the same.
    #[error("{event} is another event on each core type, and {sampled} is one on all")]
    CoreTypes {
        /// The event of the ratio.
        event: String,
        /// The sampled event.
        sampled: String,
    },
}

impl UserError for UndecidedError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::NoRatio(_) => "--when with one event divided by another: \"instructions/cycles<0.5\"",
            Self::Time(_) => "-e cycles",
            Self::Precise(_) => "-e with the event without :p",
            Self::CoreTypes { sampled, .. } => {
                return Some(format!("-e \"cpu_core/{sampled}/,cpu_atom/{sampled}/\", or one type with -C"));
            }
        };
        Some(text.to_owned())
    }
}

/// Gives every sampled event the condition. Returns the events that have to be counted beside them, in their order in
/// the request after `sampled`: those of the ratio that are not among these, in the modes of the sampled event.
///
/// # Errors
/// If the condition cannot be decided for an event, or the machine does not have an event of the ratio.
pub fn add_condition(
    condition: &Condition,
    sampled: &mut [EventRequest],
    processors: &ProcessorSet,
    connection: &Driver,
) -> Result<Vec<EventRequest>, Error> {
    let kinds = match vendor_event::identity_of(&connection.info()?) {
        Some(identity) => metrics_of_cores(identity, true, connection)?,
        None => Vec::new(),
    };
    let plain: Vec<EventRequest> = sampled.to_vec();
    let mut beside: Vec<EventRequest> = Vec::new();
    for event in sampled {
        let name = || connection.sources().map(|sources| sources.label(event));
        if event.event.source == Source::TIME.0 {
            return Err(UndecidedError::Time(name()?).into());
        }
        if event.modes & modes::PRECISE != 0 {
            return Err(UndecidedError::Precise(name()?).into());
        }
        let core_type = CoreType::from_number(event.event.core_type);
        let of_type = kinds.iter().find(|(of_kind, ..)| core_type.is_none() || *of_kind == core_type);
        let metrics = of_type.map_or(&[][..], |(_, metrics, _)| metrics);
        let Ratio { events, is_above, limit } = condition.ratio(metrics).map_err(UndecidedError::from)?;
        let mut ratio = [0; 2];
        for (index, name_of_it) in ratio.iter_mut().zip(&events) {
            let found = find(&source(name_of_it, core_type), event.modes, processors, connection)?;
            let [one] = found.as_slice() else {
                return Err(UndecidedError::CoreTypes { event: name_of_it.clone(), sampled: name()? }.into());
            };
            let flags = event_flags::BESIDE;
            let one = EventRequest { event: one.event, modes: event.modes, flags, ..EventRequest::EMPTY };
            let is_it = |other: &EventRequest| {
                let any_counter = |event: Event| Event { counters: 0, ..event };
                (any_counter(other.event), other.modes) == (any_counter(one.event), one.modes)
            };
            let all = plain.iter().chain(&beside);
            let position = all.clone().position(is_it).unwrap_or_else(|| all.count());
            if position == plain.len() + beside.len() {
                beside.push(one);
            }
            // A request has fewer events.
            *index = u16::try_from(position).unwrap_or(u16::MAX);
        }
        let flag = if is_above { event_flags::ABOVE } else { event_flags::BELOW };
        *event = EventRequest { flags: event.flags | flag, ratio, limit, ..*event };
    }
    Ok(beside)
}
