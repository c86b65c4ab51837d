//! `report`: shows the samples of a recording by columns, like perf report.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::io;

use protocol::BRANCHES;
use report::{Column, Detail};

use super::aggregate::{Aggregate, AggregateRow, Limits, OmittedRows, ProcessorLoss, SourceAggregate};
use super::context::Context;
use super::load::LoadedRecording;
use super::timeline;
use crate::cli::{ColumnName, ReportArgs};
use crate::columns::{CONSOLE, fit};
use crate::error::Error;
use crate::format::{counted, grouped, properties, table};
use crate::id::Id;
use crate::share::percent;

/// Maximum number of processors listed with their losses.
const MAX_PROCESSORS: usize = 4;

/// Names of the fields; the first line of `--csv`.
const FIELDS: [&str; 13] = [
    "source",
    "share",
    "low",
    "high",
    "samples",
    "events",
    "process",
    "process_name",
    "thread",
    "processor",
    "module",
    "symbol",
    "address",
];

/// Headings of the columns with cells that can be shortened.
const NAMES: [&str; 3] = ["Process", "Module", "Symbol"];

/// Headings of the columns of numbers.
const NUMBERS: [&str; 5] = ["Overhead", "+/-", "Samples", "Thread", "Processor"];

pub fn run(args: &ReportArgs, context: &mut Context) -> Result<i32, Error> {
    if args.merge {
        return timeline::run(args, context);
    }
    let columns: Vec<Column> = args.sort.iter().copied().map(Column::from).collect();
    let detail = Detail { thread: columns.contains(&Column::Thread), processor: columns.contains(&Column::Processor) };
    let loaded = LoadedRecording::open(&args.recording, detail)?;
    let rows = if args.percent_limit.is_some() { args.limit } else { args.max_rows() };
    let limits = Limits { rows, share: args.percent_limit.unwrap_or_default() / 100.0 };
    let aggregate = Aggregate::new(&loaded, &columns, limits);
    if args.format.json {
        context.json(&aggregate)?;
    } else if args.format.csv {
        csv(&aggregate, context)?;
    } else {
        context.say(&aggregate.recording.text(&loaded))?;
        for source in &aggregate.sources {
            context.say(&format!("\n{}", source_text(source, args)))?;
        }
    }
    loaded.finish(context)
}

fn source_text(source: &SourceAggregate, args: &ReportArgs) -> String {
    let mut text = summary(source);
    // Writing to a `String` cannot fail.
    let _ = match (&source.rows[..], &source.rest) {
        ([], OmittedRows { rows: 0, .. }) => write!(text, "\n\nno samples"),
        ([], rest) => write!(text, "\n\n{}", omitted_text(rest)),
        (shown, OmittedRows { rows: 0, .. }) => write!(text, "\n\n{}", rows(shown, args)),
        (shown, rest) => write!(text, "\n\n{}\n\n{}", rows(shown, args), omitted_text(rest)),
    };
    text
}

/// Formats how a source was sampled, the number of its samples, and its losses.
pub fn summary(source: &SourceAggregate) -> String {
    let events: Vec<String> = source
        .events
        .iter()
        .map(|event| {
            let interval = grouped(event.interval.into());
            match event.frequency {
                _ if source.id == BRANCHES => format!("{}, a record of each", event.label),
                0 => format!("{}, a sample every {interval} events", event.label),
                frequency => format!("{}, about {} samples a second", event.label, grouped(frequency.into())),
            }
        })
        .collect();
    let samples = format!("{}, standing for {} events", grouped(source.samples), grouped(source.sampled_events));
    let mut lines = vec![("Event", events.join("; ")), ("Samples", samples)];
    lines.extend(skid(source).map(|skid| ("Skid", skid.to_owned())));
    lines.extend(loss_lines(source));
    properties(&lines)
}

/// Describes the distance of the precise samples from the instruction that caused the event.
fn skid(source: &SourceAggregate) -> Option<&'static str> {
    match (source.precise, source.precise_next) {
        (0, 0) => None,
        (_, 0) => Some("0: the instruction that made the event happen"),
        (0, _) => Some("the instruction behind the one that made the event happen"),
        _ => Some("0 on some processors, on others the instruction behind"),
    }
}

/// Formats how many rows are omitted, and which option shows the next one.
fn omitted_text(rest: &OmittedRows) -> String {
    let advice = match (rest.by_number, rest.by_share) {
        (true, true) => "a larger --limit and a lower --percent-limit show more",
        (_, true) => "a lower --percent-limit shows more",
        _ => "--limit N shows N",
    };
    format!("{} left out, {:.2}% together; {advice}", counted(rest.rows as u64, "row"), rest.share * 100.0)
}

/// Returns what was lost of the samples and of the time, with the processors.
fn loss_lines(source: &SourceAggregate) -> Vec<(&'static str, String)> {
    let mut lines = vec![("Lost", lost(source))];
    if source.throttled > 0 {
        let overflows = counted(source.throttled, "overflow");
        lines.push(("Throttled", format!("{overflows} {}", by_processor(source, |one| one.throttled))));
    }
    let pauses = source.loss_stats.iter().map(|one| one.pauses).sum();
    lines.push(("Paused", paused(source, pauses)));
    if pauses > 0 {
        lines.push(("", by_processor(source, |one| one.pauses)));
    }
    let silences = source.loss_stats.iter().map(|one| one.silences).sum();
    if silences > 0 {
        let by_processor = by_processor(source, |one| one.silences);
        let times = counted(silences, "time");
        lines.push(("Stopped", format!("{times} {by_processor} by an interrupt storm")));
    }
    lines
}

/// Formats number and share of the lost samples.
fn lost(source: &SourceAggregate) -> String {
    match source.lost {
        0 => "0 samples".to_owned(),
        lost => {
            let (samples, share) = (counted(lost, "sample"), percent(source.lost_share));
            format!("{samples}, {share} {}", by_processor(source, |one| one.lost))
        }
    }
}

/// Formats number and duration of the pauses. Their share is unknown if the recording is incomplete.
fn paused(source: &SourceAggregate, pauses: u64) -> String {
    let time: f64 = source.loss_stats.iter().map(|one| one.paused_seconds).sum();
    let times = format!("{}, {time:.3} s in all", counted(pauses, "time"));
    match source.paused_share {
        Some(share) if pauses == 0 => format!("{} of the time", percent(share)),
        Some(share) => format!("{} of the time: {times}", percent(share)),
        None => times,
    }
}

/// Lists the processors with the highest numbers.
fn by_processor(source: &SourceAggregate, number: impl Fn(&ProcessorLoss) -> u64) -> String {
    let mut with: Vec<(u64, u32)> =
        source.loss_stats.iter().map(|one| (number(one), one.processor)).filter(|(number, _)| *number > 0).collect();
    with.sort_unstable_by_key(|(number, processor)| (Reverse(*number), *processor));
    let most = with.iter().take(MAX_PROCESSORS);
    let mut listed: Vec<String> =
        most.map(|(number, processor)| format!("{processor}: {}", grouped(*number))).collect();
    if let others @ 1.. = with.len() - listed.len() {
        listed.push(format!("{others} more"));
    }
    format!("(CPU {})", listed.join(", "))
}

fn rows(rows: &[AggregateRow], args: &ReportArgs) -> String {
    let mut headings = vec!["Overhead"];
    headings.extend(args.error.then_some("+/-"));
    headings.push("Samples");
    headings.extend(args.sort.iter().map(|column| heading(*column)));
    let mut cells: Vec<Vec<String>> = rows.iter().map(|row| cells(row, args)).collect();
    fit(&headings, &mut cells, &NAMES, if args.wide { usize::MAX } else { CONSOLE });
    table(&headings, &NUMBERS, &cells)
}

fn heading(column: ColumnName) -> &'static str {
    match column {
        ColumnName::Process => "Process",
        ColumnName::Module => "Module",
        ColumnName::Symbol => "Symbol",
        ColumnName::Address => "Address",
        ColumnName::Thread => "Thread",
        ColumnName::Processor => "Processor",
    }
}

fn cells(row: &AggregateRow, args: &ReportArgs) -> Vec<String> {
    let mut cells = vec![format!("{:.2}%", row.share * 100.0)];
    cells.extend(args.error.then(|| format!("{:.2}", (row.high - row.low) * 50.0)));
    cells.push(grouped(row.samples));
    cells.extend(args.sort.iter().map(|column| match column {
        ColumnName::Process => process(row),
        ColumnName::Module => row.module.clone().unwrap_or_default(),
        ColumnName::Symbol => row.symbol.clone().unwrap_or_default(),
        ColumnName::Address => row.address.clone().unwrap_or_default(),
        ColumnName::Thread => row.thread.map_or_else(String::new, |thread| thread.to_string()),
        ColumnName::Processor => row.processor.unwrap_or_default().to_string(),
    }));
    cells
}

fn process(row: &AggregateRow) -> String {
    let name = row.process_name.as_deref().unwrap_or_default();
    row.process.map_or_else(String::new, |process| process.with_name(name))
}

/// Writes the rows. Fields without a column are empty.
fn csv(aggregate: &Aggregate, context: &mut Context) -> Result<(), Error> {
    let mut out = csv::Writer::from_writer(&mut context.out);
    out.write_record(FIELDS).map_err(io::Error::from)?;
    for source in &aggregate.sources {
        for row in &source.rows {
            let fields = [
                source.name.clone(),
                format!("{:.6}", row.share),
                format!("{:.6}", row.low),
                format!("{:.6}", row.high),
                row.samples.to_string(),
                row.events.to_string(),
                row.process.map_or_else(String::new, Id::field),
                text(row.process_name.as_ref()),
                row.thread.map_or_else(String::new, Id::field),
                text(row.processor),
                text(row.module.as_ref()),
                text(row.symbol.as_ref()),
                text(row.address.as_ref()),
            ];
            out.write_record(fields).map_err(io::Error::from)?;
        }
    }
    Ok(out.flush()?)
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
