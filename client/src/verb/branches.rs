//! `branches`: counts every branch that processors take by source and target.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use halprof::text::processors::ranges;
use protocol::{BRANCHES, DEFAULT_BUDGET, Event, EventRequest, SampleRecord, StartHeader};
use recording::{Limits, Process};
use report::{Branch, BranchCount, BranchCounts, Processes, SymbolIndex, UNKNOWN_NAME};
use serde::Serialize;

use crate::cli::BranchesArgs;
use crate::reading::load::finder;
use crate::verb::branch_end::{BranchEnd, real_field};
use counts::share;
use recorder::SampleObserver;
use recorder::sampling::{self, Outcome, SamplingPlan};
use recorder::tasks::Scope;
use system::connection;
use terminal::columns::fitted;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{bytes, counted, grouped, properties, real, seconds};
use user_error::Error;

/// Names of the fields; the first line of `--csv`.
const FIELDS: [&str; 9] = [
    "count",
    "share",
    "predicted",
    "from_address",
    "from_module",
    "from_symbol",
    "to_address",
    "to_module",
    "to_symbol",
];

const HEADINGS: [&str; 5] = ["Count", "Share", "From", "To", "Predicted"];

/// Counts branches while processors are traced.
#[derive(Default)]
struct BranchTrace {
    processes: Processes,
    branches: BranchCounts,
}

impl SampleObserver for BranchTrace {
    fn process(&mut self, process: &Process) {
        self.processes.add(process);
    }

    fn samples(&mut self, samples: &[SampleRecord]) {
        self.branches.record(samples);
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BranchReport {
    processors: Vec<u32>,
    elapsed_seconds: f64,
    records: u64,
    lost: u64,
    /// Lost branches as a share of all branches, from 0 to 1.
    lost_share: f64,
    /// Number of times a processor had spent its budget and recorded nothing until the next timer tick.
    pauses: u64,
    /// Pauses that ended before the session.
    pauses_ended: u64,
    /// Total duration of the pauses that ended, over all processors.
    paused_seconds: f64,
    /// Paused time as a share of the time of all processors, from 0 to 1.
    paused_share: f64,
    #[serde(rename = "different")]
    distinct: usize,
    branches: Vec<BranchRow>,
}

impl Document for BranchReport {
    const SCHEMA: &'static str = "halprof.branches/1";
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BranchRow {
    count: u64,
    /// Share of all records, from 0 to 1.
    share: f64,
    /// Share of predicted executions, from 0 to 1; `None` if no record at all has the prediction bit set.
    predicted: Option<f64>,
    from: BranchEnd,
    to: BranchEnd,
}

pub fn run(args: &BranchesArgs, context: &mut Context) -> Result<i32, Error> {
    let ring = args.ring()?;
    let system = context.system()?;
    let connection = connection::open(system)?;
    let event =
        EventRequest { event: Event::of(BRANCHES), modes: args.modes(), interval: args.buffer, ..EventRequest::EMPTY };
    let wanted = SamplingPlan {
        header: StartHeader { ring, ..args.session.header() },
        events: &[event],
        condition: None,
        scope: Scope::All,
        duration: args.session.duration,
        command: &args.session.command,
        output: args.output.as_deref(),
        limits: Limits::default(),
    };
    let mut trace = BranchTrace::default();
    let outcome = sampling::run(&wanted, None, Some(&mut trace), &connection, system)?;
    context.command_code = Some(outcome.exit_code);
    // In text, branches of unknown processes are added up first.
    let is_text = !args.format.json && !args.format.csv;
    let report = describe(&trace, &outcome, if is_text { usize::MAX } else { args.top })?;
    if args.format.json {
        context.json(&report)?;
    } else if args.format.csv {
        csv(&report.branches, context)?;
    } else {
        context.say(&text(&report, args.top, context.width(false)))?;
    }
    for note in outcome.notes() {
        context.warn(&note)?;
    }
    if let Some(path) = &args.output {
        context.warn(&format!("[ written to {}, {} ]", path.display(), bytes(outcome.length)))?;
    }
    if report.lost > 0 {
        context.warn(&format!(
            "warning: {} branches were lost, and the shares are of the others\n  \
             try: a larger --ring, a shorter time, or fewer processors (-C)",
            grouped(report.lost)
        ))?;
    }
    if report.pauses > 0 {
        let percent = args.session.budget.unwrap_or(DEFAULT_BUDGET / 10);
        context.warn(&format!(
            "warning: recording paused {}: interrupts had {percent} % of a\n  \
             processor's time; the branches of that time are in no count\n  \
             try: a larger --budget, or one mode alone (--user, --kernel)",
            counted(report.pauses, "time")
        ))?;
    }
    for warning in outcome.record_counts.warnings().chain(outcome.disturbance_warning()) {
        context.warn(&warning)?;
    }
    Ok(outcome.exit_code)
}

fn describe(trace: &BranchTrace, outcome: &Outcome, top: usize) -> Result<BranchReport, Error> {
    let Outcome { summary, record_counts, .. } = outcome;
    let most = trace.branches.top(top);
    let locations = most.iter().flat_map(|(branch, _)| [branch.source(), branch.target()]);
    let symbol_index = SymbolIndex::of(&trace.processes, locations, &finder(Vec::new(), None)?);
    let total = trace.branches.total();
    let lost = outcome.lost();
    Ok(BranchReport {
        processors: summary.counts.iter().map(|count| count.processor).collect::<BTreeSet<u32>>().into_iter().collect(),
        elapsed_seconds: seconds(summary.elapsed),
        records: total.count,
        lost,
        lost_share: share::lost(lost, total.count),
        // If the ring is full, the record of a start or of an end is missing.
        pauses: record_counts.pauses.max(record_counts.ended),
        pauses_ended: record_counts.ended,
        paused_seconds: outcome.paused_seconds(),
        paused_share: outcome.paused_share(),
        distinct: trace.branches.distinct(),
        branches: most.iter().map(|(branch, taken)| row(branch, *taken, total, &symbol_index)).collect(),
    })
}

fn row(branch: &Branch, taken: BranchCount, total: BranchCount, symbol_index: &SymbolIndex) -> BranchRow {
    BranchRow {
        count: taken.count,
        share: real(taken.count) / real(total.count),
        predicted: (total.predicted > 0).then(|| real(taken.predicted) / real(taken.count)),
        from: BranchEnd::of(&branch.source(), symbol_index),
        to: BranchEnd::of(&branch.target(), symbol_index),
    }
}

/// Puts the branches from or to the same unknown address into one row: without a process, addresses of user mode mean
/// nothing.
fn merged(branches: &[BranchRow], records: u64) -> Vec<BranchRow> {
    let shown = |end: &BranchEnd| {
        let is_unknown = end.module == UNKNOWN_NAME;
        BranchEnd { symbol: if is_unknown { UNKNOWN_NAME } else { &end.symbol }.to_owned(), ..end.clone() }
    };
    let mut rows = Vec::new();
    let mut unknown: BTreeMap<(String, String), BranchRow> = BTreeMap::new();
    for branch in branches {
        let row = BranchRow { from: shown(&branch.from), to: shown(&branch.to), ..*branch };
        if row.from.symbol != UNKNOWN_NAME && row.to.symbol != UNKNOWN_NAME {
            rows.push(row);
            continue;
        }
        let nothing = BranchRow { count: 0, share: 0.0, predicted: row.predicted.map(|_| 0.0), ..row.clone() };
        let sum = unknown.entry((row.from.symbol.clone(), row.to.symbol.clone())).or_insert(nothing);
        let predicted = [&*sum, &row].map(|row| row.predicted.unwrap_or_default() * real(row.count));
        sum.count += row.count;
        sum.share = real(sum.count) / real(records);
        sum.predicted = row.predicted.map(|_| predicted.iter().sum::<f64>() / real(sum.count));
    }
    rows.extend(unknown.into_values());
    rows.sort_by_key(|row| Reverse(row.count));
    rows
}

fn text(report: &BranchReport, max: usize, width: usize) -> String {
    let percent = |share: f64| format!("{:.2}%", share * 100.0);
    let row = |row: &BranchRow| {
        vec![
            grouped(row.count),
            percent(row.share),
            row.from.symbol.clone(),
            row.to.symbol.clone(),
            row.predicted.map_or_else(|| "-".to_owned(), percent),
        ]
    };
    let branches = merged(&report.branches, report.records);
    let rows = branches.iter().take(max).map(row).collect();
    let shown = match &report.branches[..] {
        [] => "no branches".to_owned(),
        _ => fitted(&HEADINGS, &["Count", "Share", "Predicted"], &["From", "To"], rows, width),
    };
    let mut lines = vec![
        ("Records", format!("{}, of {} different branches", grouped(report.records), grouped(report.distinct as u64))),
        ("Lost", lost(report)),
        ("Paused", paused(report)),
    ];
    if let open @ 1.. = report.pauses.saturating_sub(report.pauses_ended) {
        lines.push(("", format!("({} of them lasted to the end and is not in the time)", grouped(open))));
    }
    lines.push(("Processors", ranges(report.processors.iter().copied())));
    lines.push(("Elapsed", format!("{:.3} s", report.elapsed_seconds)));
    format!("{shown}\n\n{}", properties(&lines))
}

/// Formats number and share of the lost branches.
fn lost(report: &BranchReport) -> String {
    match report.lost {
        0 => "0".to_owned(),
        lost => format!("{}, {}", grouped(lost), share::percent(report.lost_share)),
    }
}

/// Formats number and duration of the pauses.
fn paused(report: &BranchReport) -> String {
    let share = format!("{} of the time", share::percent(report.paused_share));
    match report.pauses {
        0 => share,
        pauses => format!("{share}: {}, {:.3} s in all", counted(pauses, "time"), report.paused_seconds),
    }
}

fn csv(rows: &[BranchRow], context: &mut Context) -> Result<(), Error> {
    let mut out = csv::Writer::from_writer(&mut context.out);
    out.write_record(FIELDS).map_err(io::Error::from)?;
    for row in rows {
        let numbers = [row.count.to_string(), format!("{:.6}", row.share), real_field(row.predicted)];
        let ends = row.from.fields().into_iter().chain(row.to.fields());
        let fields = numbers.iter().map(String::as_str).chain(ends);
        out.write_record(fields).map_err(io::Error::from)?;
    }
    Ok(out.flush()?)
}
