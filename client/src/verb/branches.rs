//! `branches`: every branch that processors take, counted by where it is and where it went.

use std::collections::BTreeSet;
use std::io;

use protocol::{BRANCHES, EventRequest, Sample, USUAL_BUDGET};
use recording::Process;
use report::{Atlas, Branch, Branches, Place, Processes, Taken};
use serde::Serialize;

use super::context::Context;
use super::recorded::finder;
use super::sampling::{self, Outcome, Wanted};
use crate::cli::BranchesArgs;
use crate::columns::{CONSOLE, fit};
use crate::connection::Connection;
use crate::error::Error;
use crate::format::{address, bytes, counted, grouped, properties, real, seconds, table};
use crate::processors::ranges;
use crate::recorder::Onlooker;
use crate::share;

/// The fields of `--csv`, which are its first line.
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

/// What comes while processors are traced.
#[derive(Default)]
struct Trace {
    processes: Processes,
    branches: Branches,
}

impl Onlooker for Trace {
    fn process(&mut self, process: &Process) {
        self.processes.add(process);
    }

    fn samples(&mut self, samples: &[Sample]) {
        self.branches.add(samples);
    }
}

#[derive(Debug, Serialize)]
struct Traced {
    processors: Vec<u32>,
    elapsed_seconds: f64,
    records: u64,
    lost: u64,
    /// Of all branches, from 0 to 1.
    lost_share: f64,
    /// How often a processor had spent its budget, and recorded nothing until the next tick.
    pauses: u64,
    /// Of these: that ended before the session did.
    pauses_ended: u64,
    /// How long those took, over all processors.
    paused_seconds: f64,
    /// Of the time of all processors, from 0 to 1.
    paused_share: f64,
    different: usize,
    branches: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    count: u64,
    /// Of all records, from 0 to 1.
    share: f64,
    /// Of these, from 0 to 1; none where no record at all says that its branch was predicted.
    predicted: Option<f64>,
    from: Spot,
    to: Spot,
}

/// One end of a branch.
#[derive(Debug, Serialize)]
struct Spot {
    address: String,
    module: String,
    symbol: String,
}

pub fn run(args: &BranchesArgs, context: &mut Context) -> Result<i32, Error> {
    let ring = args.ring()?;
    let system = context.system()?;
    let connection = Connection::open(system)?;
    let event = EventRequest { source: BRANCHES, modes: args.modes(), interval: args.buffer, frequency: 0 };
    let wanted = Wanted { args: &args.session, ring, events: &[event], batch: 0, output: args.output.as_deref() };
    let mut trace = Trace::default();
    let outcome = sampling::run(&wanted, Some(&mut trace), &connection, system)?;
    context.command_code = Some(outcome.exit_code);
    let traced = describe(&trace, &outcome, args.top)?;
    if args.format.json {
        context.json(&traced)?;
    } else if args.format.csv {
        csv(&traced.branches, context)?;
    } else {
        context.say(&text(&traced))?;
    }
    if let Some(path) = &args.output {
        context.warn(&format!("[ written to {}, {} ]", path.display(), bytes(outcome.length)))?;
    }
    if traced.lost > 0 {
        context.warn(&format!(
            "warning: {} branches were lost, and the shares are of the others\n  \
             try: a larger --ring, a shorter time, or fewer processors (-C)",
            grouped(traced.lost)
        ))?;
    }
    if traced.pauses > 0 {
        let percent = args.session.budget.unwrap_or(USUAL_BUDGET / 10);
        context.warn(&format!(
            "warning: recording paused {}: interrupts had {percent} % of a\n  \
             processor's time; the branches of that time are in no count\n  \
             try: a larger --budget, or one mode alone (--user, --kernel)",
            counted(traced.pauses, "time")
        ))?;
    }
    Ok(outcome.exit_code)
}

fn describe(trace: &Trace, outcome: &Outcome, top: usize) -> Result<Traced, Error> {
    let Outcome { summary, tally, .. } = outcome;
    let most = trace.branches.most(top);
    let places = most.iter().flat_map(|(branch, _)| [branch.source(), branch.target()]);
    let atlas = Atlas::of(&trace.processes, places, &finder(Vec::new(), None)?);
    let total = trace.branches.total();
    let lost = outcome.lost();
    Ok(Traced {
        processors: summary.counts.iter().map(|count| count.processor).collect::<BTreeSet<u32>>().into_iter().collect(),
        elapsed_seconds: seconds(summary.elapsed),
        records: total.count,
        lost,
        lost_share: share::lost(lost, total.count),
        // A ring that is full has room for no record of the one or of the other.
        pauses: tally.pauses.max(tally.ended),
        pauses_ended: tally.ended,
        paused_seconds: outcome.paused_seconds(),
        paused_share: outcome.paused_share(),
        different: trace.branches.different(),
        branches: most.iter().map(|(branch, taken)| row(branch, *taken, total, &atlas)).collect(),
    })
}

fn row(branch: &Branch, taken: Taken, total: Taken, atlas: &Atlas) -> Row {
    let spot = |place: Place| Spot {
        address: address(place.ip),
        module: atlas.module(&place).to_owned(),
        symbol: atlas.symbol(&place).into_owned(),
    };
    Row {
        count: taken.count,
        share: real(taken.count) / real(total.count),
        predicted: (total.predicted > 0).then(|| real(taken.predicted) / real(taken.count)),
        from: spot(branch.source()),
        to: spot(branch.target()),
    }
}

fn text(traced: &Traced) -> String {
    let percent = |share: f64| format!("{:.2}%", share * 100.0);
    let row = |row: &Row| {
        vec![
            grouped(row.count),
            percent(row.share),
            row.from.symbol.clone(),
            row.to.symbol.clone(),
            row.predicted.map_or_else(|| "-".to_owned(), percent),
        ]
    };
    let mut rows: Vec<Vec<String>> = traced.branches.iter().map(row).collect();
    fit(&HEADINGS, &mut rows, &["From", "To"], CONSOLE);
    let shown = match &traced.branches[..] {
        [] => "no branches".to_owned(),
        _ => table(&HEADINGS, &["Count", "Share", "Predicted"], &rows),
    };
    let mut lines = vec![
        ("Records", format!("{}, of {} different branches", grouped(traced.records), grouped(traced.different as u64))),
        ("Lost", lost(traced)),
        ("Paused", paused(traced)),
    ];
    if let open @ 1.. = traced.pauses.saturating_sub(traced.pauses_ended) {
        lines.push(("", format!("({} of them lasted to the end and is not in the time)", grouped(open))));
    }
    lines.push(("Processors", ranges(traced.processors.iter().copied())));
    lines.push(("Elapsed", format!("{:.3} s", traced.elapsed_seconds)));
    format!("{shown}\n\n{}", properties(&lines))
}

/// How many branches were lost.
fn lost(traced: &Traced) -> String {
    match traced.lost {
        0 => "0".to_owned(),
        lost => format!("{} or {}", grouped(lost), share::percent(traced.lost_share)),
    }
}

/// How often and for how long recording paused.
fn paused(traced: &Traced) -> String {
    let share = format!("{} of the time", share::percent(traced.paused_share));
    match traced.pauses {
        0 => share,
        pauses => format!("{share}: {}, {:.3} s in all", counted(pauses, "time"), traced.paused_seconds),
    }
}

fn csv(rows: &[Row], context: &mut Context) -> Result<(), Error> {
    let mut out = csv::Writer::from_writer(&mut context.out);
    out.write_record(FIELDS).map_err(io::Error::from)?;
    for row in rows {
        let fields = [
            &*row.count.to_string(),
            &format!("{:.6}", row.share),
            &row.predicted.map_or_else(String::new, |share| format!("{share:.6}")),
            &row.from.address,
            &row.from.module,
            &row.from.symbol,
            &row.to.address,
            &row.to.module,
            &row.to.symbol,
        ];
        out.write_record(fields).map_err(io::Error::from)?;
    }
    Ok(out.flush()?)
}
