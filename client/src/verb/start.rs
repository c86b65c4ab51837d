//! `start`: starts a detached session.

use halprof::event::mode_letters;
use halprof::text::argument::argument;
use halprof::text::processors::named;
use pmu::Source;
use protocol::{ProcessorSet, StartHeader, flags};
use serde::Serialize;

use crate::cli::StartArgs;
use counts::requests::{StartedEvent, events};
use system::connection;
use terminal::context::Context;
use terminal::document::Document;
use user_error::Error;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Started {
    session: u64,
    events: Vec<StartedEvent>,
    /// Absent for all active processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    processors: Option<Vec<u32>>,
}

impl Document for Started {
    const SCHEMA: &'static str = "halprof.start/1";
}

pub fn run(args: &StartArgs, context: &mut Context) -> Result<(), Error> {
    let connection = connection::open(context.system()?)?;
    let sources = connection.sources()?;
    let set = args.processors.map_or(ProcessorSet::EMPTY, |list| list.0);
    let events = events(&args.events, &set, &connection)?;
    let flags = flags::DETACHED | flags::MULTIPLEX | args.force.flags();
    let header = StartHeader { flags, processors: set, ..StartHeader::EMPTY };
    let session = connection.start(&header, &events)?.session;
    if args.format.json {
        let started = |event: &protocol::EventRequest| StartedEvent {
            id: Source(event.event.source).number(),
            name: sources.event_name(&event.event),
            modes: mode_letters(event.modes),
        };
        let processors = args.processors.map(|list| list.0.iter().collect());
        return context.json(&Started { session, events: events.iter().map(started).collect(), processors });
    }
    let labels: Vec<String> = events.iter().map(|event| sources.label(event)).collect();
    let cpus = if set.is_empty() { "every processor".to_owned() } else { named(set.iter()) };
    context.say(&format!("session {session} counts on {cpus}: {}", labels.join(", ")))?;
    let names: Vec<String> =
        events.iter().map(|event| argument(&sources.event_name(&event.event)).into_owned()).collect();
    context.say(&format!("until: .\\client stop {}", names.join(" ")))
}
