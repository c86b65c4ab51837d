//! Events of requests, and the counts of events.

use halprof::Driver;
use halprof::event::{SourceName, requests, resolve, suffix};
use halprof::source::Sources;
use protocol::{CountRecord, Event, EventRequest, ProcessorSet, modes};
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::event_list::{EventList, Member};
use crate::names::Names;
use crate::{EventCount, by_event};
use terminal::document::Document;
use user_error::event_error::EventError;
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Why the counts of detached sessions cannot be shown.
#[derive(Debug, ThisError)]
pub enum DetachedError {
    /// Named sources do not run detached.
    #[error("{} not running detached", subject(.names))]
    NotRunning {
        /// Names of the sources.
        names: Vec<String>,
    },
    /// No source runs detached.
    #[error("no source runs detached")]
    NoSource,
}

fn subject(names: &[String]) -> String {
    format!("{} {}", names.join(", "), if names.len() == 1 { "is" } else { "are" })
}

impl UserError for DetachedError {
    fn exit(&self) -> Exit {
        Exit::NotRunning
    }

    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::NotRunning { .. } => ".\\client status   (lists what runs)",
            Self::NoSource => ".\\client start SOURCE",
        };
        Some(text.to_owned())
    }
}

/// The counts of events, as `--json` shows them.
#[derive(Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Counts {
    /// The counts.
    pub events: Vec<EventCount>,
}

impl Document for Counts {
    const SCHEMA: &'static str = "halprof.counts/1";
}

/// An event of a request, as `--json` shows it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct StartedEvent {
    /// KPROFILE_SOURCE; `None` for an event that the HAL has no number for.
    pub id: Option<u32>,
    /// Name of the source.
    pub name: String,
    /// `u`, `k` or `uk`.
    pub modes: &'static str,
}

/// Returns the events that the user named, each once. On a hybrid, an event by its maker's name is one for each core
/// type of `processors` that has it.
///
/// # Errors
/// If the machine does not have an event, or one is named twice with different counters.
pub fn events(lists: &[EventList], processors: &ProcessorSet, connection: &Driver) -> Result<Vec<EventRequest>, Error> {
    Ok(labelled_events(lists.iter(), processors, connection, |_, error| Err(error))?.0)
}

/// Returns the events that the user named as [`events()`] does, and the name of the row of each, if the user gave one.
///
/// `omit` receives the name and the error of an event that the machine does not have.
///
/// # Errors
/// If an event has two names, or what `omit` returns.
pub fn labelled_events<'a>(
    lists: impl Iterator<Item = &'a EventList>,
    processors: &ProcessorSet,
    connection: &Driver,
    mut omit: impl FnMut(String, Error) -> Result<(), Error>,
) -> Result<(Vec<EventRequest>, Vec<Option<String>>), Error> {
    let (mut events, mut labels): (Vec<EventRequest>, Vec<Option<String>>) = (Vec::new(), Vec::new());
    for list in lists {
        let groups_before = events.iter().map(|event| event.group).max().unwrap_or_default();
        for Member { event: name, group, label } in list {
            let found = requests(name, processors, connection).or_else(|error| {
                let name = label.clone().unwrap_or_else(|| format!("{}{}", name.source, suffix(name.modes)));
                omit(name, error.into()).map(|()| Vec::new())
            })?;
            for request in found {
                let event = EventRequest { group: if *group == 0 { 0 } else { groups_before + group }, ..request };
                add(&mut events, event, connection.sources()?)?;
                labels.resize(events.len(), label.clone());
                let position = events.iter().position(|other| *other == event);
                if position.and_then(|position| labels.get(position)) != Some(label) {
                    return Err(EventError::TwoLabels { name: connection.sources()?.label(&event) }.into());
                }
            }
        }
    }
    Ok((events, labels))
}

/// Adds an event if it is not there yet.
///
/// # Errors
/// If it is there with other counters: its counts could not be told apart.
pub fn add(events: &mut Vec<EventRequest>, event: EventRequest, sources: &Sources) -> Result<(), Error> {
    // An event can be in several groups.
    let key = |request: &EventRequest| (Event { counters: 0, ..request.event }, request.modes, request.group);
    if events.iter().any(|other| key(other) == key(&event) && other.event.counters != event.event.counters) {
        let name = sources.label(&EventRequest { event: Event { counters: 0, ..event.event }, ..event });
        return Err(EventError::TwoNarrowings { name }.into());
    }
    if !events.contains(&event) {
        events.push(event);
    }
    Ok(())
}

/// Returns the events that the user named, on any counter.
///
/// # Errors
/// If the machine does not have a source.
pub fn wanted(connection: &Driver, names: &[Names<SourceName>]) -> Result<Vec<Event>, Error> {
    let mut wanted = Vec::new();
    for name in names.iter().flatten() {
        let found = resolve(name, modes::BOTH, &ProcessorSet::EMPTY, connection)?;
        wanted.extend(found.iter().map(|one| Event { counters: 0, ..one.event }));
    }
    Ok(wanted)
}

/// Returns the counts of the named sources that run detached, or of all detached sources if none is named.
///
/// # Errors
/// If a named source does not run detached.
pub fn detached(connection: &Driver, names: &[Names<SourceName>]) -> Result<Vec<CountRecord>, Error> {
    let sources = connection.sources()?;
    let wanted = wanted(connection, names)?;
    let running = match connection.read(protocol::DETACHED) {
        Err(error) if error.exit() == Exit::NotRunning => Vec::new(),
        answer => answer?,
    };
    let is_meant = |record: &CountRecord, one: &Event| {
        record.event.source == one.source && (one.core_type == 0 || record.event.core_type == one.core_type)
    };
    let idle = wanted.iter().filter(|one| !running.iter().any(|record| is_meant(record, one)));
    let names: Vec<String> = idle.map(|one| sources.event_name(one)).collect();
    if names.is_empty() {
        let is_wanted = |record: &CountRecord| wanted.is_empty() || wanted.iter().any(|one| is_meant(record, one));
        return Ok(running.into_iter().filter(is_wanted).collect());
    }
    Err(DetachedError::NotRunning { names }.into())
}

/// Groups the counts by event.
///
/// # Errors
/// If the driver does not answer.
pub fn counts(records: &[CountRecord], connection: &Driver) -> Result<Counts, Error> {
    let info = connection.info()?;
    let sources = connection.sources()?;
    let mut events = by_event(records, |record| sources.name_of(&record.event));
    for event in &mut events {
        event.add_errata(&info);
        event.set_word(&sources.word_of(&event.event));
    }
    Ok(Counts { events })
}
