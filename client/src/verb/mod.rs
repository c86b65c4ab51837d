//! One file per verb.

mod branches;
mod command;
mod control_area;
mod diagnose;
mod export;
mod flamegraph;
mod info;
mod install;
mod interval;
mod list;
mod merged;
mod query;
mod read;
mod record;
mod recorded;
mod report;
mod sampling;
mod service;
mod start;
mod stat;
mod status;
mod stop;
mod summed;
mod tables;
mod uninstall;

use std::io::{Read, Write};

use protocol::{CountRecord, EventRequest};
use serde::Serialize;

use crate::cli::Verb;
use crate::cli::names::Names;
use crate::connection::Connection;
use crate::counts::{EventCount, by_event};
use crate::error::Error;
use crate::event::{self, EventName, SourceName};
use crate::exit::Exit;
use crate::output::Output;
use crate::source::Sources;
use crate::system::System;

/// What a verb works with.
pub struct Context<'a> {
    /// The machine, where it is a Windows.
    pub system: Option<&'a dyn System>,
    /// Standard input.
    pub input: &'a mut dyn Read,
    /// Standard output.
    pub out: Output<'a>,
    /// Standard error.
    pub err: Output<'a>,
    /// The exit code of a command that has ended. The client ends with the same code.
    command_code: Option<i32>,
}

impl<'a> Context<'a> {
    /// Creates a context in which no command has run yet.
    pub fn new(
        system: Option<&'a dyn System>,
        input: &'a mut dyn Read,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Self {
        Self { system, input, out: Output::new(out), err: Output::new(err), command_code: None }
    }

    fn system(&self) -> Result<&'a dyn System, Error> {
        self.system.ok_or(Error::NotWindows)
    }

    fn say(&mut self, text: &str) -> Result<(), Error> {
        Ok(writeln!(self.out, "{text}")?)
    }

    /// For people, beside what the verb puts out.
    fn warn(&mut self, text: &str) -> Result<(), Error> {
        Ok(writeln!(self.err, "{text}")?)
    }

    fn json(&mut self, value: &impl Serialize) -> Result<(), Error> {
        write_json(&mut self.out, value)
    }
}

/// Does what the command line says and returns the exit code. A closed pipe ends the verb early and is no failure: the
/// reader has what it wants.
pub fn run(verb: &Verb, context: &mut Context) -> Result<i32, Error> {
    let mut ended = run_verb(verb, context);
    if ended.is_ok() {
        // What is still in the buffer could otherwise be lost without a word.
        ended = context.out.flush().map_err(Error::Output).and(ended);
    }
    match ended {
        Err(_) if context.out.is_closed() || context.err.is_closed() => {
            Ok(context.command_code.unwrap_or(Exit::Done.code()))
        }
        ended => ended,
    }
}

fn run_verb(verb: &Verb, context: &mut Context) -> Result<i32, Error> {
    match verb {
        Verb::Stat(args) => return stat::run(args, context),
        Verb::Record(args) => return record::run(args, context),
        Verb::Branches(args) => return branches::run(args, context),
        Verb::Report(args) => return report::run(args, context),
        Verb::Export(args) => return export::run(args, context),
        Verb::Flamegraph(args) => return flamegraph::run(args, context),
        Verb::Status(args) => return status::run(args, context).map(Exit::code),
        Verb::Install(args) => install::run(args, context),
        Verb::Uninstall => uninstall::run(context),
        Verb::Info(args) => info::run(args, context),
        Verb::List(args) => match args.interface {
            Some(interface) => tables::run(interface.into(), args.format.json, context),
            None => list::run(args, context),
        },
        Verb::Diagnose(args) => diagnose::run(args, context),
        Verb::Query(args) => query::run(args, context),
        Verb::Interval(args) => interval::run(args, context),
        Verb::ControlArea(args) => control_area::run(args, context),
        Verb::Start(args) => start::run(args, context),
        Verb::Stop(args) => stop::run(args, context),
        Verb::Read(args) => read::run(args, context),
    }?;
    Ok(Exit::Done.code())
}

fn write_json(out: &mut dyn Write, value: &impl Serialize) -> Result<(), Error> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    Ok(writeln!(out)?)
}

/// The counts of events, as `--json` shows them.
#[derive(Serialize)]
struct Counts {
    events: Vec<EventCount>,
}

/// An event of a request, as `--json` shows it.
#[derive(Debug, Serialize)]
struct StartedEvent {
    id: u32,
    name: String,
    modes: &'static str,
}

/// The events that the user named, each once.
fn events(names: &[Names<EventName>], sources: &Sources) -> Result<Vec<EventRequest>, Error> {
    let mut events: Vec<EventRequest> = Vec::new();
    for name in names.iter().flatten() {
        let source = sources.find(&name.source)?.id;
        let event = EventRequest { source, modes: name.modes, interval: 0, frequency: 0 };
        if !events.contains(&event) {
            events.push(event);
        }
    }
    Ok(events)
}

fn label(event: &EventRequest, sources: &Sources) -> String {
    format!("{}{}", sources.name(event.source), event::suffix(event.modes))
}

/// What runs detached of the sources named, or all of it when none is.
fn detached(connection: &Connection, names: &[Names<SourceName>]) -> Result<Vec<CountRecord>, Error> {
    let sources = connection.sources()?;
    let wanted = names.iter().flatten().map(|name| Ok(sources.find(name)?.id)).collect::<Result<Vec<u32>, Error>>()?;
    let running = match connection.read(protocol::DETACHED) {
        Err(Error::Refused(refusal)) if refusal.exit() == Exit::NotRunning => Vec::new(),
        answer => answer?,
    };
    let idle: Vec<u32> =
        wanted.iter().copied().filter(|source| running.iter().all(|record| record.source != *source)).collect();
    if idle.is_empty() {
        return Ok(running.into_iter().filter(|record| wanted.is_empty() || wanted.contains(&record.source)).collect());
    }
    Err(Error::NotRunning { names: idle.iter().map(|source| sources.name(*source)).collect() })
}

/// The counts of records, ready to be shown.
fn counts(records: &[CountRecord], connection: &Connection) -> Result<Counts, Error> {
    Ok(Counts { events: by_event(records, connection.sources()?) })
}

#[cfg(test)]
mod tests;
