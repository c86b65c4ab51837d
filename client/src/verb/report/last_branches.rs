//! `report --branch`: shows the last branches of samples by source and target.

use std::io;

use report::{LastBranch, LastBranchCount, LastBranchStats, SymbolIndex};
use serde::Serialize;

use crate::cli::ReportArgs;
use crate::reading::aggregate::{Header, WithoutSymbols, without_symbols};
use crate::reading::load::LoadedRecording;
use crate::reading::losses::finish_export;
use crate::verb::branch_end::{BranchEnd, real_field};
use terminal::color;
use terminal::columns::fitted;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{counted, grouped, properties, real};
use user_error::Error;

/// Names of the fields; the first line of `--csv`.
const FIELDS: [&str; 10] = [
    "count",
    "share",
    "mispredicted",
    "cycles",
    "from_address",
    "from_module",
    "from_symbol",
    "to_address",
    "to_module",
    "to_symbol",
];

const HEADINGS: [&str; 6] = ["Share", "Count", "Missed", "Cycles", "From", "To"];

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LastBranches<'a> {
    recording: Header<'a>,
    /// Number of selected samples with branches.
    samples: u64,
    /// Number of their branches, without those that were cut.
    records: u64,
    /// Number of samples of which branches were cut, because their process cannot have them.
    cut_samples: u64,
    /// Number of branches that were cut.
    cut: u64,
    /// Number of rows, also of those that are not shown.
    #[serde(rename = "different")]
    distinct: usize,
    branches: Vec<LastBranchRow>,
    without_symbols: Vec<WithoutSymbols<'a>>,
}

impl Document for LastBranches<'_> {
    const SCHEMA: &'static str = "halprof.last-branches/1";
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LastBranchRow {
    count: u64,
    /// Share of all records, from 0 to 1.
    share: f64,
    /// Share of the mispredicted ones among the records that say whether it was predicted; `None` if none does.
    mispredicted: Option<f64>,
    /// Mean of the core clock cycles since the branch before it; `None` if no record has them.
    cycles: Option<f64>,
    from: BranchEnd,
    to: BranchEnd,
    /// The symbols of both ends with the offsets in them.
    #[serde(skip)]
    places: [String; 2],
}

impl LastBranchRow {
    fn new(branch: &LastBranch, all: u64, symbol_index: &SymbolIndex) -> Self {
        let LastBranch { from, to, count } = branch;
        let LastBranchCount { count, reported, mispredicted, timed, cycles } = *count;
        let ratio = |part, whole| (whole > 0).then(|| real(part) / real(whole));
        Self {
            count,
            share: real(count) / real(all),
            mispredicted: ratio(mispredicted, reported),
            cycles: ratio(cycles, timed),
            from: BranchEnd::of(from, symbol_index),
            to: BranchEnd::of(to, symbol_index),
            places: [from, to].map(|location| symbol_index.symbol_and_offset(location).into_owned()),
        }
    }
}

pub fn run(args: &ReportArgs, context: &mut Context) -> Result<i32, Error> {
    let (loaded, table) = LoadedRecording::with_last_branches(&args.recording)?;
    let LoadedRecording { contents, symbol_index, filter, .. } = &loaded;
    let LastBranchStats { samples, branches, cut_samples, cut } = table.stats;
    let rows = table.rows(&contents.processes, symbol_index, filter);
    let shown = rows.iter().take(args.max_rows().unwrap_or(usize::MAX));
    let shown = shown.map(|row| LastBranchRow::new(row, branches, symbol_index)).collect();
    let report = LastBranches {
        recording: Header::new(&loaded),
        samples,
        records: branches,
        cut_samples,
        cut,
        distinct: rows.len(),
        branches: shown,
        without_symbols: without_symbols(symbol_index),
    };
    if args.format.json {
        context.json(&report)?;
    } else if args.format.csv {
        csv(&report.branches, context)?;
    } else {
        context.say(&report.recording.text(&loaded))?;
        context.say_painted(&format!("\n{}", text(&report, context.width(args.names.wide))))?;
    }
    finish_export(&loaded, context)
}

/// Formats how many branches there are, and how many were cut.
pub fn numbers(stats: LastBranchStats) -> Vec<(&'static str, String)> {
    let LastBranchStats { samples, branches, cut_samples, cut } = stats;
    let mut lines = vec![("Branches", format!("{} before {}", grouped(branches), counted(samples, "sample")))];
    if cut > 0 {
        let (cut, samples) = (grouped(cut), counted(cut_samples, "sample"));
        lines.push(("Cut", format!("{cut} of {samples}, which can be of another process")));
    }
    lines
}

/// Formats the branches with the escape sequences of colors.
fn text(report: &LastBranches, width: usize) -> String {
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let row = |row: &LastBranchRow| {
        let [from, to] = row.places.clone();
        vec![
            format!("{:.2}%", row.share * 100.0),
            grouped(row.count),
            optional(row.mispredicted.map(|share| format!("{:.2}%", share * 100.0))),
            optional(row.cycles.map(|cycles| format!("{cycles:.1}"))),
            from,
            to,
        ]
    };
    let LastBranches { samples, records: branches, cut_samples, cut, .. } = *report;
    let mut parts = vec![properties(&numbers(LastBranchStats { samples, branches, cut_samples, cut }))];
    parts.push(match &report.branches[..] {
        [] => "no branches".to_owned(),
        rows => color::table(&fitted(&HEADINGS, &HEADINGS[..4], &HEADINGS[4..], rows.iter().map(row).collect(), width)),
    });
    if let more @ 1.. = report.distinct - report.branches.len() {
        parts.push(format!("{} left out; --limit N shows N", counted(more as u64, "row")));
    }
    parts.join("\n\n")
}

fn csv(rows: &[LastBranchRow], context: &mut Context) -> Result<(), Error> {
    let mut out = csv::Writer::from_writer(&mut context.out);
    out.write_record(FIELDS).map_err(io::Error::from)?;
    for row in rows {
        let [mispredicted, cycles] = [row.mispredicted, row.cycles].map(real_field);
        let numbers = [row.count.to_string(), format!("{:.6}", row.share), mispredicted, cycles];
        let ends = row.from.fields().into_iter().chain(row.to.fields());
        let fields = numbers.iter().map(String::as_str).chain(ends);
        out.write_record(fields).map_err(io::Error::from)?;
    }
    Ok(out.flush()?)
}
