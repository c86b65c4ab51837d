//! `c2c`: shows the cache lines that threads share, like perf c2c.

use std::collections::BTreeMap;
use std::io;

use report::{AccessNames, CacheLine, CacheLines, LineAccess, LineLoads, Sharing};
use serde::Serialize;

use crate::cli::{C2cArgs, C2cReportArgs, C2cVerb};
use crate::reading::aggregate::{Header, WithoutSymbols, without_symbols};
use crate::reading::load::LoadedRecording;
use crate::reading::losses::finish_export;
use crate::verb::branch_end::real_field;
use crate::verb::mem::record;
use counts::share::{self, percent};
use terminal::color;
use terminal::columns::fitted;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{address, counted, grouped, properties};
use terminal::id::Id;
use user_error::Error;

/// Names of the fields; the first line of `--csv`.
const FIELDS: [&str; 18] = [
    "line",
    "line_name",
    "line_process",
    "sharing",
    "share",
    "share_error",
    "offset",
    "process",
    "process_name",
    "thread",
    "module",
    "symbol",
    "remote_hitm",
    "local_hitm",
    "loads",
    "stores",
    "stores_l1",
    "processors",
];

/// Headings of the lines, and of the numbers of the accesses of one.
const LINE_HEADINGS: [&str; 9] = ["HITM", "+/-", "Local", "Remote", "Loads", "Stores", "Threads", "Shared", "Line"];
const ACCESS_NUMBERS: [&str; 8] = ["HITM", "Stores", "Offset", "Local", "Remote", "Other", "CPUs", "Thread"];

/// Maximum number of accesses of a line in text.
const MAX_ACCESSES: usize = 12;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SharedLines<'a> {
    recording: Header<'a>,
    /// Bytes of a line.
    line_bytes: u64,
    /// All selected accesses.
    accesses: AccessNumbers,
    /// Number of accesses without an address, or of an unknown process: they are in no line.
    without_line: u64,
    /// Loads that hit a modified copy among those.
    hitm_without_line: u64,
    /// Number of loads whose records cannot say that they hit a modified copy.
    silent: u64,
    /// Number of lines, also of those that are not shown.
    #[serde(rename = "different")]
    distinct: usize,
    lines: Vec<SharedLine>,
    without_symbols: Vec<WithoutSymbols<'a>>,
}

impl Document for SharedLines<'_> {
    const SCHEMA: &'static str = "halprof.cache-lines/1";
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct AccessNumbers {
    loads: u64,
    stores: u64,
    /// Stores that hit the first-level cache, where records say it.
    stores_l1: u64,
    /// Loads that hit a modified copy of a cache in this node.
    local_hitm: u64,
    /// Loads that hit one of a cache in another node.
    remote_hitm: u64,
}

impl From<LineLoads> for AccessNumbers {
    fn from(LineLoads { loads, stores, stores_l1, local_modified, remote_modified }: LineLoads) -> Self {
        Self { loads, stores, stores_l1, local_hitm: local_modified, remote_hitm: remote_modified }
    }
}

impl AccessNumbers {
    const fn hitm(&self) -> u64 {
        self.local_hitm + self.remote_hitm
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SharedLine {
    /// Where it begins.
    address: String,
    /// The same with its module: `app.exe+0x4000`.
    name: String,
    /// The process of an address in user mode.
    process: Option<Id>,
    process_name: Option<String>,
    #[serde(flatten)]
    accesses: AccessNumbers,
    /// Share of the loads of all lines that hit a modified copy, from 0 to 1.
    share: f64,
    /// Its standard error.
    share_error: f64,
    /// Number of threads that accessed it.
    threads: usize,
    /// `one thread`, `false`, `true` or `mixed`.
    sharing: &'static str,
    /// Loads by what served them.
    levels: BTreeMap<String, u64>,
    places: Vec<LinePlace>,
    #[serde(skip)]
    shared: Sharing,
    /// The levels in their order.
    #[serde(skip)]
    sources: String,
}

/// The accesses of a thread in one function to an offset of a line.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LinePlace {
    /// Bytes from the start of the line.
    offset: u64,
    process: Id,
    process_name: String,
    thread: Id,
    module: String,
    symbol: String,
    /// The variable and its member, with `--type` if a PDB names them.
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<String>,
    #[serde(flatten)]
    accesses: AccessNumbers,
    /// Number of processors on which they were.
    processors: usize,
    /// Mean latency of the loads that hit a modified copy in this node, in core clock cycles.
    local_cycles: Option<f64>,
    /// That of those in other nodes.
    remote_cycles: Option<f64>,
    /// That of all other loads.
    other_cycles: Option<f64>,
}

impl SharedLine {
    fn new(line: CacheLine, loaded: &LoadedRecording) -> Self {
        let process = line.address.process();
        let processes = &loaded.contents.processes;
        let sources: Vec<String> =
            line.levels.iter().map(|(level, number)| format!("{} {}", level.name(), grouped(*number))).collect();
        Self {
            address: line.address.number().map_or_else(String::new, address),
            name: line.address.text(&loaded.contents),
            process: process.map(|process| process.id.into()),
            process_name: process.map(|process| processes.name_or_unknown(process).to_owned()),
            accesses: line.loads.into(),
            share: line.share,
            share_error: line.error,
            threads: line.threads,
            sharing: line.sharing.name(),
            levels: line.levels.iter().map(|(level, number)| (level.name().into_owned(), *number)).collect(),
            places: line.accesses.into_iter().map(|access| LinePlace::new(access, loaded)).collect(),
            shared: line.sharing,
            sources: sources.join(", "),
        }
    }

    /// Formats the address with its process.
    fn label(&self) -> String {
        let Self { name, process, process_name, .. } = self;
        let owner = process.map(|process| process.with_name(process_name.as_deref().unwrap_or_default()));
        owner.map_or_else(|| name.clone(), |owner| format!("{name} of {owner}"))
    }

    /// Says who accesses it.
    fn who(&self) -> String {
        let threads = counted(self.threads as u64, "thread");
        match self.shared {
            Sharing::OneThread => "one thread in the samples".to_owned(),
            Sharing::False => format!("{threads} at different offsets: false sharing"),
            Sharing::True => format!("{threads} at the same offsets: true sharing"),
            Sharing::Mixed => format!("{threads}, at the same and at different offsets"),
        }
    }
}

impl LinePlace {
    fn new(access: LineAccess, loaded: &LoadedRecording) -> Self {
        let LineAccess { offset, process, thread, module, symbol, variable, loads, processors, .. } = access;
        let LineAccess { remote_cycles, local_cycles, other_cycles, .. } = access;
        Self {
            offset,
            process: process.id.into(),
            process_name: loaded.contents.processes.name_or_unknown(process).to_owned(),
            thread: thread.into(),
            module,
            symbol,
            variable,
            accesses: loads.into(),
            processors,
            local_cycles,
            remote_cycles,
            other_cycles,
        }
    }
}

pub fn run(args: &C2cArgs, context: &mut Context) -> Result<i32, Error> {
    match args.verb.as_deref() {
        Some(C2cVerb::Record(args)) => record::run(args, context),
        Some(C2cVerb::Report(args)) => show(args, context),
        None => show(&args.report, context),
    }
}

fn show(args: &C2cReportArgs, context: &mut Context) -> Result<i32, Error> {
    let (loaded, accesses) = LoadedRecording::with_accesses(&args.recording)?;
    let mut names = AccessNames::default();
    if args.by_type {
        names = loaded.access_names(&accesses, &args.recording.selection)?;
    }
    let found = CacheLines::new(accesses.all(), args.size(), args.max_lines(), &loaded.symbol_index, &names);
    let CacheLines { loads, without_line, modified_without_line, silent, lines, number } = found;
    let report = SharedLines {
        recording: Header::new(&loaded),
        line_bytes: args.size().bytes(),
        accesses: loads.into(),
        without_line,
        hitm_without_line: modified_without_line,
        silent,
        distinct: number,
        lines: lines.into_iter().map(|line| SharedLine::new(line, &loaded)).collect(),
        without_symbols: without_symbols(&loaded.symbol_index),
    };
    if args.format.json {
        context.json(&report)?;
    } else if args.format.csv {
        csv(&report.lines, context)?;
    } else {
        context.say(&report.recording.text(&loaded))?;
        context.say_painted(&format!("\n{}", text(&report, context.width(args.wide))))?;
    }
    finish_export(&loaded, context)
}

/// Formats the lines with the escape sequences of colors.
fn text(report: &SharedLines, width: usize) -> String {
    let mut parts = vec![properties(&account(report))];
    if report.lines.is_empty() {
        parts.push("no line has loads that hit a modified copy".to_owned());
        return parts.join("\n\n");
    }
    let rows = report.lines.iter().map(|line| {
        vec![
            format!("{:.1}%", line.share * 100.0),
            format!("{:.1}", line.share_error * 100.0),
            grouped(line.accesses.local_hitm),
            grouped(line.accesses.remote_hitm),
            grouped(line.accesses.loads),
            grouped(line.accesses.stores),
            line.threads.to_string(),
            if line.shared == Sharing::OneThread { "-".to_owned() } else { line.sharing.to_owned() },
            line.name.clone(),
        ]
    });
    parts.push(color::table(&fitted(&LINE_HEADINGS, &LINE_HEADINGS[..7], &LINE_HEADINGS[8..], rows.collect(), width)));
    if let more @ 1.. = report.distinct - report.lines.len() {
        parts.push(format!("{} left out; --limit N shows N", counted(more as u64, "line")));
    }
    parts.extend(report.lines.iter().map(|line| line_text(line, width)));
    parts.join("\n\n")
}

/// Returns how many accesses there are, and which of them say nothing of lines.
fn account(report: &SharedLines) -> Vec<(&'static str, String)> {
    let SharedLines { accesses, line_bytes, without_line, silent, .. } = report;
    let hitm = format!(
        "{}: {} in this node, {} in others",
        grouped(accesses.hitm()),
        grouped(accesses.local_hitm),
        grouped(accesses.remote_hitm)
    );
    let mut lines = vec![
        ("Loads", grouped(accesses.loads)),
        ("Stores", grouped(accesses.stores)),
        ("HITM", hitm),
        ("Lines", format!("{line_bytes} bytes; user addresses within a process, kernel ones over all")),
        ("Cycles", "mean of the loads with a local or remote HITM, and of all others".to_owned()),
    ];
    if *without_line > 0 {
        let all = accesses.loads.max(accesses.stores).max(*without_line);
        let share = percent(share::of(*without_line, all));
        lines.push(("No line", format!("{}, {share}: no address, or no process", counted(*without_line, "sample"))));
    }
    if *silent > 0 {
        let share = percent(share::of(*silent, accesses.loads));
        lines.push((
            "Silent",
            format!("{}, {share}: their processor does not tell modified copies", counted(*silent, "load")),
        ));
    }
    lines
}

/// Formats the accesses of a line. Their process has a column unless it is that of the line.
fn line_text(line: &SharedLine, width: usize) -> String {
    let SharedLine { places, sources, process: owner, .. } = line;
    let has_process = places.iter().any(|place| Some(place.process) != *owner);
    let has_variable = places.iter().any(|place| place.variable.is_some());
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |cycles| format!("{cycles:.0}"));
    let rows = places.iter().take(MAX_ACCESSES).map(|place| {
        let mut row = vec![
            grouped(place.accesses.hitm()),
            grouped(place.accesses.stores),
            format!("{:#x}", place.offset),
            optional(place.local_cycles),
            optional(place.remote_cycles),
            optional(place.other_cycles),
            place.processors.to_string(),
            place.thread.to_string(),
        ];
        row.extend(has_process.then(|| place.process.with_name(&place.process_name)));
        row.push(place.symbol.clone());
        row.extend(has_variable.then(|| place.variable.clone().unwrap_or_default()));
        row
    });
    let columns = [(has_process, "Process"), (true, "Function"), (has_variable, "Data")];
    let names: Vec<&str> = columns.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, name)| name).collect();
    let headings = [&ACCESS_NUMBERS, &names[..]].concat();
    let table = color::table(&fitted(&headings, &ACCESS_NUMBERS, &names, rows.collect(), width));
    let more = match places.len().saturating_sub(MAX_ACCESSES) {
        0 => String::new(),
        more => format!("\n{} left out; --json has all", counted(more as u64, "row")),
    };
    format!("{}: {}\nLoads by source: {sources}\n{table}{more}", line.label(), line.who())
}

fn csv(lines: &[SharedLine], context: &mut Context) -> Result<(), Error> {
    let mut out = csv::Writer::from_writer(&mut context.out);
    let last = ["local_cycles", "remote_cycles", "other_cycles", "variable"];
    out.write_record(FIELDS.iter().chain(&last)).map_err(io::Error::from)?;
    for line in lines {
        for place in &line.places {
            let fields = [
                line.address.clone(),
                line.name.clone(),
                line.process.map_or_else(String::new, Id::field),
                line.sharing.to_owned(),
                format!("{:.6}", line.share),
                format!("{:.6}", line.share_error),
                place.offset.to_string(),
                place.process.field(),
                place.process_name.clone(),
                place.thread.field(),
                place.module.clone(),
                place.symbol.clone(),
                place.accesses.remote_hitm.to_string(),
                place.accesses.local_hitm.to_string(),
                place.accesses.loads.to_string(),
                place.accesses.stores.to_string(),
                place.accesses.stores_l1.to_string(),
                place.processors.to_string(),
            ];
            let cycles = [place.local_cycles, place.remote_cycles, place.other_cycles].map(real_field);
            let variable = place.variable.clone().unwrap_or_default();
            out.write_record(fields.into_iter().chain(cycles).chain([variable])).map_err(io::Error::from)?;
        }
    }
    Ok(out.flush()?)
}
