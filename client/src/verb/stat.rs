//! `stat`: counts while a command runs, like perf stat.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use protocol::{ErrorCode, EventRequest, ProcessorSet, StartHeader, flags, modes};
use serde::Serialize;

use super::command;
use super::context::{Context, write_json};
use super::events::{counts, events};
use crate::cli::StatArgs;
use crate::connection::Connection;
use crate::core_types::with_processors;
use crate::counts::{EventCount, OnProcessor, asleep, disturbance_note, turns_note};
use crate::error::Error;
use crate::event::EventError;
use crate::format::real;
use crate::metric::{self, Metric};
use crate::output::OutputError;
use crate::processors::named;
use crate::refusal::Refusal;
use crate::role::Role;
use crate::scaling;

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
    let header = StartHeader { flags: flags::MULTIPLEX | args.force.flags(), ring: 0, budget: 0, batch: 0, processors };
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
    counted.sort_by_key(|event| event.index);
    if args.no_scale {
        counted.iter_mut().for_each(EventCount::unscale);
    }

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
    let takes_turns = stat.events.iter().any(|counted| counted.event.took_turns());
    for Counted { event, metric } in &stat.events {
        let label = event.label();
        // Writing to a `String` cannot fail.
        let _ = if per_cpu {
            event.processors.iter().try_for_each(|one| {
                let error = if takes_turns { error_of(event, one.error, one.scaled) } else { String::new() };
                writeln!(text, "CPU{:<5}{:>20}{error}  {label}", one.processor, one.number())
            })
        } else {
            let column = metric.as_ref().map_or_else(String::new, |metric| format!("  #{}", metric_column(metric)));
            let error = if takes_turns { error_of(event, event.error, event.scaled) } else { String::new() };
            let line = format!("{:>20}{error}  {label:width$}{column}", event.number());
            writeln!(text, "{}", line.trim_end())
        };
    }
    let _ = write!(text, "\n{:>20.9} seconds time elapsed\n", stat.elapsed_seconds);
    if let Some(note) = turns_note(stat.events.iter().map(|counted| &counted.event)) {
        let _ =
            writeln!(text, "\n{note}\n+- is half of the interval in which the true number lies in 95 of 100 cases.");
    }
    if let Some(seconds) = asleep(stat.events.iter().map(|counted| &counted.event)) {
        let _ = writeln!(text, "{seconds:>20.9} seconds of it asleep, in which nothing was counted");
    }
    if let Some(note) = disturbance_note(stat.events.iter().map(|counted| &counted.event)) {
        let _ = writeln!(text, "\n{note}");
    }
    text
}

/// Formats the error of a scaled count, in a column that is empty for events that did not take turns.
fn error_of(event: &EventCount, error: Option<f64>, scaled: u64) -> String {
    match error {
        _ if !event.took_turns() || event.is_uncounted() => " ".repeat(9),
        Some(error) if scaled > 0 => format!(" +-{:5.2}%", 100.0 * error / real(scaled)),
        Some(_) | None => " +-    ?%".to_owned(),
    }
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
    let mut out = csv::Writer::from_writer(out);
    for Counted { event, metric } in &stat.events {
        let label = event.label();
        if per_cpu {
            for OnProcessor { processor, scaled, ticks, running, .. } in &event.processors {
                let (cpu, count, share) = (format!("CPU{processor}"), scaled.to_string(), percent(*running, *ticks));
                out.write_record([&cpu, &count, UNIT, &label, &nanoseconds(*running), &share, "", ""])
                    .map_err(io::Error::from)?;
            }
        } else {
            let (value, unit) = metric
                .as_ref()
                .map_or_else(Default::default, |metric| (format!("{:.3}", metric.value), metric.unit.clone()));
            let (count, share) = (event.scaled.to_string(), format!("{:.2}", event.percent_running));
            let running = event.processors.iter().map(|one| one.running).max().unwrap_or_default();
            out.write_record([&count, UNIT, &label, &nanoseconds(running), &share, &value, &unit])
                .map_err(io::Error::from)?;
        }
    }
    Ok(out.flush()?)
}

fn percent(running: u64, enabled: u64) -> String {
    format!("{:.2}", 100.0 * scaling::share_running(running, enabled))
}

fn nanoseconds(ticks: u64) -> String {
    ticks.saturating_mul(100).to_string()
}
