//! `report`: shows the samples of a recording by columns, like perf report.

use std::fmt::Write as _;
use std::io;

use report::{Column, Detail, Limits, OmittedRows};

use super::aggregate::{Aggregate, AggregateRow, SourceAggregate};
use super::context::Context;
use super::load::LoadedRecording;
use super::summary::summary;
use super::timeline;
use crate::cli::{FieldName, ReportArgs};
use crate::columns::{CONSOLE, fit};
use crate::error::Error;
use crate::format::{counted, grouped, table};
use crate::id::Id;

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
const NUMBERS: [&str; 6] = ["Overhead", "+/-", "Samples", "Events", "Thread", "Processor"];

pub fn run(args: &ReportArgs, context: &mut Context) -> Result<i32, Error> {
    if args.merge {
        return timeline::run(args, context);
    }
    let columns: Vec<Column> = args.columns()?;
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
            context.say(&format!("\n{}", source_text(source, loaded.filter.narrows(), args)))?;
        }
    }
    loaded.finish(context)
}

fn source_text(source: &SourceAggregate, narrows: bool, args: &ReportArgs) -> String {
    let mut text = summary(source, narrows);
    // Writing to a `String` cannot fail.
    let _ = match (&source.rows[..], &source.rest) {
        ([], OmittedRows { rows: 0, .. }) => write!(text, "\n\nno samples"),
        ([], rest) => write!(text, "\n\n{}", omitted_text(rest)),
        (shown, OmittedRows { rows: 0, .. }) => write!(text, "\n\n{}", rows(shown, args)),
        (shown, rest) => write!(text, "\n\n{}\n\n{}", rows(shown, args), omitted_text(rest)),
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

fn rows(rows: &[AggregateRow], args: &ReportArgs) -> String {
    let fields = args.shown();
    let headings: Vec<&str> = fields.iter().map(|field| heading(*field)).collect();
    let cells = |row: &AggregateRow| fields.iter().map(|field| cell(*field, row)).collect();
    let mut cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    fit(&headings, &mut cells, &NAMES, if args.names.wide { usize::MAX } else { CONSOLE });
    table(&headings, &NUMBERS, &cells)
}

fn heading(field: FieldName) -> &'static str {
    match field {
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
