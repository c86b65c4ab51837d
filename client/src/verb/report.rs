//! `report`: shows the samples of a recording by columns, like perf report.

pub mod blocks;
pub mod last_branches;
pub mod timeline;

use std::fmt::Write as _;
use std::io;

use report::{Column, Detail, Limits, OmittedRows};

use crate::cli::{FieldName, ReportArgs};
use crate::reading::aggregate::{Aggregate, AggregateRow, Calls, SourceAggregate};
use crate::reading::load::LoadedRecording;
use crate::reading::summary::summary;
use terminal::color;
use terminal::columns::fitted;
use terminal::context::Context;
use terminal::format::{counted, grouped, properties};
use terminal::id::Id;
use terminal::output::printable_lines;
use user_error::Error;

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

/// Names of the fields that follow with `--children`.
const CHILDREN_FIELDS: [&str; 3] = ["total_share", "total_samples", "total_events"];

/// Names of the fields that follow with `--latency`.
const LATENCY_FIELDS: [&str; 2] = ["latency", "parallelism"];

/// Headings of the columns with cells that can be shortened.
const NAMES: [&str; 3] = ["Process", "Module", "Symbol"];

/// Headings of the columns of numbers.
const NUMBERS: [&str; 10] =
    ["Children", "Self", "Latency", "Overhead", "+/-", "Samples", "Events", "Thread", "Processor", "Parallelism"];

pub fn run(args: &ReportArgs, context: &mut Context) -> Result<i32, Error> {
    if args.merge {
        return timeline::run(args, context);
    }
    if args.branches.branch {
        return last_branches::run(args, context);
    }
    if args.branches.blocks {
        return blocks::run(args, context);
    }
    let columns: Vec<Column> = args.columns()?;
    let (thread, processor) = (columns.contains(&Column::Thread), columns.contains(&Column::Processor));
    let stacks = args.has_children() || args.calls.call_graph.is_some();
    let detail = Detail { thread, processor, stacks, parallelism: args.has_latency() };
    let (mut loaded, branches) = if args.branches.branch_history {
        let (loaded, stats) = LoadedRecording::with_branch_history(&args.recording, detail)?;
        (loaded, Some(stats))
    } else {
        (LoadedRecording::open(&args.recording, detail)?, None)
    };
    loaded.filter.parallelism.clone_from(&args.parallelism);
    let rows = if args.percent_limit.is_some() { args.limit } else { args.max_rows() };
    let limits = Limits { rows, share: args.percent_limit.unwrap_or_default() / 100.0 };
    let width = context.width(args.names.wide);
    let calls = Calls { has_children: args.has_children(), order: args.call_order(), width };
    let aggregate = Aggregate::with_calls(&loaded, &columns, limits, calls);
    if args.format.json {
        context.json(&aggregate)?;
    } else if args.format.csv {
        csv(&aggregate, context)?;
    } else {
        context.say(&aggregate.recording.text(&loaded))?;
        if let Some(stats) = branches {
            context.say(&properties(&last_branches::numbers(stats)))?;
        }
        for source in &aggregate.sources {
            context.say_painted(&format!("\n{}", source_text(source, loaded.filter.narrows(), args, width)))?;
        }
    }
    loaded.finish(context)
}

fn source_text(source: &SourceAggregate, narrows: bool, args: &ReportArgs, width: usize) -> String {
    let mut text = printable_lines(&summary(source, narrows)).into_owned();
    // Writing to a `String` cannot fail.
    let _ = match (&source.rows[..], &source.rest) {
        ([], OmittedRows { rows: 0, .. }) => write!(text, "\n\nno samples"),
        ([], rest) => write!(text, "\n\n{}", omitted_text(rest)),
        (shown, OmittedRows { rows: 0, .. }) => write!(text, "\n\n{}", rows(shown, args, width)),
        (shown, rest) => write!(text, "\n\n{}\n\n{}", rows(shown, args, width), omitted_text(rest)),
    };
    text
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

fn rows(rows: &[AggregateRow], args: &ReportArgs, width: usize) -> String {
    let fields = args.shown();
    let headings: Vec<&str> = fields.iter().map(|field| heading(*field, args)).collect();
    let cells = |row: &AggregateRow| fields.iter().map(|field| cell(*field, row)).collect();
    let text = fitted(&headings, &NUMBERS, &NAMES, rows.iter().map(cells).collect(), width);
    if rows.iter().all(|row| row.calls.is_empty()) {
        return color::table(&text);
    }
    let mut trees = rows.iter().map(|row| &row.calls);
    let mut lines: Vec<&str> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        lines.push(line);
        // The headings and their rules have no calls.
        if index >= 2
            && let Some(tree) = trees.next()
            && !tree.is_empty()
        {
            lines.extend(tree.iter().map(String::as_str));
            lines.push("");
        }
    }
    color::table(lines.join("\n").trim_end())
}

fn heading(field: FieldName, args: &ReportArgs) -> &'static str {
    match field {
        FieldName::Children => "Children",
        FieldName::Latency => "Latency",
        FieldName::Parallelism => "Parallelism",
        FieldName::Overhead if args.has_children() => "Self",
        FieldName::Overhead => "Overhead",
        FieldName::Error => "+/-",
        FieldName::Samples => "Samples",
        FieldName::Events => "Events",
        FieldName::Process => "Process",
        FieldName::Module => "Module",
        FieldName::Symbol => "Symbol",
        FieldName::Address => "Address",
        FieldName::Thread => "Thread",
        FieldName::Processor => "Processor",
    }
}

fn cell(field: FieldName, row: &AggregateRow) -> String {
    match field {
        FieldName::Children => {
            row.total.as_ref().map_or_else(String::new, |total| format!("{:.2}%", total.share * 100.0))
        }
        FieldName::Latency => row.latency.map_or_else(String::new, |share| format!("{:.2}%", share * 100.0)),
        FieldName::Parallelism => match row.parallelism {
            None | Some(0) => "unknown".to_owned(),
            Some(number) => number.to_string(),
        },
        FieldName::Overhead => format!("{:.2}%", row.share * 100.0),
        FieldName::Error => format!("{:.2}", (row.high - row.low) * 50.0),
        FieldName::Samples => grouped(row.samples),
        FieldName::Events => grouped(row.events),
        FieldName::Process => process(row),
        FieldName::Module => row.module.clone().unwrap_or_default(),
        FieldName::Symbol => row.symbol.clone().unwrap_or_default(),
        FieldName::Address => row.address.clone().unwrap_or_default(),
        FieldName::Thread => row.thread.map_or_else(String::new, |thread| thread.to_string()),
        FieldName::Processor => row.processor.unwrap_or_default().to_string(),
    }
}

fn process(row: &AggregateRow) -> String {
    let name = row.process_name.as_deref().unwrap_or_default();
    row.process.map_or_else(String::new, |process| process.with_name(name))
}

/// Writes the rows. Fields without a column are empty.
fn csv(aggregate: &Aggregate, context: &mut Context) -> Result<(), Error> {
    let mut out = csv::Writer::from_writer(&mut context.out);
    let has = |column: fn(&AggregateRow) -> bool| aggregate.sources.iter().flat_map(|source| &source.rows).any(column);
    let (has_children, has_latency) = (has(|row| row.total.is_some()), has(|row| row.latency.is_some()));
    let children = if has_children { &CHILDREN_FIELDS[..] } else { &[] };
    let latency = if has_latency { &LATENCY_FIELDS[..] } else { &[] };
    out.write_record(FIELDS.iter().chain(children).chain(latency)).map_err(io::Error::from)?;
    for source in &aggregate.sources {
        for row in &source.rows {
            let total = row
                .total
                .as_ref()
                .map(|total| [format!("{:.6}", total.share), total.samples.to_string(), total.events.to_string()]);
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
            let latency = row.latency.map(|share| [format!("{share:.6}"), text(row.parallelism)]);
            let fields = fields.into_iter().chain(total.into_iter().flatten()).chain(latency.into_iter().flatten());
            out.write_record(fields.collect::<Vec<_>>()).map_err(io::Error::from)?;
        }
    }
    Ok(out.flush()?)
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}
