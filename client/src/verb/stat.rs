//! `stat`: counts while a command runs, like perf stat.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use protocol::{ErrorCode, EventRequest, ProcessorSet, StartHeader, modes};
use serde::Serialize;

use super::command;
use super::context::{Context, write_json};
use super::events::{counts, events};
use crate::cli::StatArgs;
use crate::connection::Connection;
use crate::core_types::with_processors;
use crate::counts::{EventCount, OnProcessor, asleep, disturbance_note, marked};
use crate::error::Error;
use crate::event::EventError;
use crate::metric::{self, Metric};
use crate::output::OutputError;
use crate::processors::named;
use crate::refusal::Refusal;
use crate::role::Role;

/// Roles of the events that are counted without `-e`, in this order.
const DEFAULT_ROLES: [Role; 4] = [Role::Cycles, Role::Instructions, Role::Branches, Role::BranchMisses];

#[derive(Serialize)]
struct Counted {
    #[serde(flatten)]
    event: EventCount,
    metric: Option<Metric>,
}

#[derive(Serialize)]
struct Stat {
    command: Vec<String>,
    exit_code: i32,
    elapsed_seconds: f64,
    processors: Vec<u32>,
    events: Vec<Counted>,
}

pub fn run(args: &StatArgs, context: &mut Context) -> Result<i32, Error> {
    let connection = Connection::open(context.system()?)?;
    let processors = args.processors.map_or(ProcessorSet::EMPTY, |list| list.0);
    let mut events = if args.events.is_empty() {
        default_events(&connection)?
    } else {
        events(&args.events, &processors, &connection)?
    };
    // The file is created before the command runs, so an error is reported early.
    let mut file = args.output.as_deref().filter(|path| *path != Path::new("-")).map(create).transpose()?;

    context.system()?.note_interrupts()?;
    let header = StartHeader { flags: args.force.flags(), ring: 0, budget: 0, batch: 0, processors };
    let session = loop {
        match connection.start(&header, &events) {
            Ok(started) => break started.session,
            // The last event is requested in any case: its refusal names the sessions that hold the counters.
            Err(error) => match error.downcast_ref::<Refusal>().filter(|refusal| can_omit(refusal)) {
                Some(refusal) if args.events.is_empty() && events.len() > 1 => {
                    let refused = events.iter().position(|event| event.source == refusal.header.source);
                    events.remove(refused.unwrap_or(events.len() - 1));
                }
                _ => return Err(error),
            },
        }
    };
    let begin = Instant::now();
    let status = command::run(&args.command);
    let elapsed = begin.elapsed();
    let records = connection.stop_all(session);
    let exit_code = command::exit_code(status?);
    context.command_code = Some(exit_code);
    let mut counted = counts(&records?, &connection)?.events;
    counted.sort_by_key(|event| position(event, &events));

    let stat = describe(args, exit_code, elapsed.as_secs_f64(), counted);
    let out: &mut dyn Write = match (&mut file, &args.output) {
        (Some(file), _) => file,
        (None, Some(_)) => &mut context.out,
        (None, None) => &mut context.err,
    };
    if args.json {
        write_json(out, &stat)?;
    } else if args.csv {
        csv(&stat, args.per_cpu, out)?;
        if let Some(note) = disturbance_note(stat.events.iter().map(|counted| &counted.event)) {
            context.warn(&note)?; // the columns have no room for it
        }
    } else {
        writeln!(out, "{}", text(&stat, args.per_cpu))?;
    }
    Ok(exit_code)
}

fn create(path: &Path) -> Result<File, Error> {
    Ok(File::create(path).map_err(|cause| OutputError::File { path: path.to_owned(), cause })?)
}

/// Returns whether the refused event can be omitted: no counter is free for it, or a processor does not support it.
fn can_omit(refusal: &Refusal) -> bool {
    [ErrorCode::NoFreeCounter, ErrorCode::UnsupportedSource].iter().any(|cause| refusal.header.cause == *cause as u32)
}

/// Returns the default events that the machine supports.
fn default_events(connection: &Connection) -> Result<Vec<EventRequest>, Error> {
    let sources = connection.sources()?;
    let found = DEFAULT_ROLES.into_iter().filter_map(|role| sources.with_role(role));
    let events: Vec<EventRequest> =
        found.map(|source| EventRequest { source: source.id, modes: modes::BOTH, ..EventRequest::EMPTY }).collect();
    if events.is_empty() { Err(EventError::NoDefault.into()) } else { Ok(events) }
}

/// Returns the position of an event on the command line.
fn position(event: &EventCount, events: &[EventRequest]) -> usize {
    let same = |asked: &EventRequest| {
        let is_type = asked.core_type == 0 || asked.core_type == event.core_type_number;
        asked.source == event.id && asked.modes == event.mode_bits && is_type
    };
    events.iter().position(same).unwrap_or(events.len())
}

fn describe(args: &StatArgs, exit_code: i32, elapsed_seconds: f64, counted: Vec<EventCount>) -> Stat {
    let mut processors: Vec<u32> =
        counted.iter().flat_map(|event| event.processors.iter().map(|one| one.processor)).collect();
    processors.sort_unstable();
    processors.dedup();
    let metrics: Vec<Option<Metric>> = counted.iter().map(|event| metric::of(event, &counted)).collect();
    Stat {
        command: command::words(&args.command),
        exit_code,
        elapsed_seconds,
        processors,
        events: counted.into_iter().zip(metrics).map(|(event, metric)| Counted { event, metric }).collect(),
    }
}

fn text(stat: &Stat, per_cpu: bool) -> String {
    let core_types = core_types_of(stat);
    let core_types = if core_types.is_empty() { core_types } else { format!(" {core_types}\n\n") };
    let width = stat.events.iter().map(|counted| counted.event.label().len()).max().unwrap_or_default().max(24);
    let mut text = format!(
        "\n Counts of {}, system wide, while '{}' ran:\n\n{core_types}",
        named(stat.processors.iter().copied()),
        stat.command.join(" ")
    );
    for Counted { event, metric } in &stat.events {
        let label = event.label();
        // Writing to a `String` cannot fail.
        let _ = if per_cpu {
            event.processors.iter().try_for_each(|OnProcessor { processor, count, disturbed, .. }| {
                writeln!(text, "CPU{processor:<5}{:>20}  {label}", marked(*count, disturbed.is_some()))
            })
        } else {
            let column = metric.as_ref().map_or_else(String::new, |metric| format!("  #{}", metric_column(metric)));
            let count = marked(event.count, event.disturbed);
            let line = format!("{count:>20}  {label:width$}{column}");
            writeln!(text, "{}", line.trim_end())
        };
    }
    let _ = write!(text, "\n{:>20.9} seconds time elapsed\n", stat.elapsed_seconds);
    if let Some(seconds) = asleep(stat.events.iter().map(|counted| &counted.event)) {
        let _ = writeln!(text, "{seconds:>20.9} seconds of it asleep, in which nothing was counted");
    }
    if let Some(note) = disturbance_note(stat.events.iter().map(|counted| &counted.event)) {
        let _ = writeln!(text, "\n{note}");
    }
    text
}

/// Formats the core types of the events with their processors; empty on a machine that is not a hybrid.
fn core_types_of(stat: &Stat) -> String {
    let mut found: Vec<(&str, Vec<u32>)> = Vec::new();
    for Counted { event, .. } in &stat.events {
        let Some(name) = event.core_type.as_deref() else { continue };
        if !found.iter().any(|(known, _)| *known == name) {
            found.push((name, event.processors.iter().map(|one| one.processor).collect()));
        }
    }
    with_processors(found)
}

fn metric_column(Metric { value, unit }: &Metric) -> String {
    if unit.starts_with('%') { format!("{value:9.2}{unit}") } else { format!("{value:9.3} {unit}") }
}

/// Writes the columns that the help names. The names of raw events contain commas, so they are quoted.
fn csv(stat: &Stat, per_cpu: bool, out: &mut dyn Write) -> Result<(), Error> {
    const UNIT: &str = "";
    const PERCENT_RUNNING: &str = "100.00";
    let mut out = csv::Writer::from_writer(out);
    for Counted { event, metric } in &stat.events {
        let label = event.label();
        if per_cpu {
            for OnProcessor { processor, count, ticks, .. } in &event.processors {
                let (cpu, count, enabled) = (format!("CPU{processor}"), count.to_string(), nanoseconds(*ticks));
                out.write_record([&cpu, &count, UNIT, &label, &enabled, PERCENT_RUNNING, "", ""])
                    .map_err(io::Error::from)?;
            }
        } else {
            let (value, unit) = metric
                .as_ref()
                .map_or_else(Default::default, |metric| (format!("{:.3}", metric.value), metric.unit.clone()));
            let (count, enabled) = (event.count.to_string(), nanoseconds(event.ticks));
            out.write_record([&count, UNIT, &label, &enabled, PERCENT_RUNNING, &value, &unit])
                .map_err(io::Error::from)?;
        }
    }
    Ok(out.flush()?)
}

fn nanoseconds(ticks: u64) -> String {
    ticks.saturating_mul(100).to_string()
}
