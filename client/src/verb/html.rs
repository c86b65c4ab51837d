//! The HTML report: one file with everything in it, which loads nothing from the network.

mod memory;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use report::{CallNode, CallTree, Column, ExportError, Limits, RecordedTime, SampledSource, Table, TableRow, rates};
use serde::Serialize;

use self::memory::Memory;
use crate::cli::SelectionArgs;
use crate::reading::aggregate::Aggregate;
use crate::reading::load::LoadedRecording;
use crate::reading::summary::summary;
use terminal::id::Id;
use user_error::Error;
use user_error::output_error::OutputError;

const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/script.js");

/// Columns of the rows, as of `report`.
const FUNCTIONS: [Column; 3] = [Column::Process, Column::Module, Column::Symbol];

/// Columns of what is inlined into them.
const INLINED: [Column; 3] = [Column::Process, Column::Module, Column::Frames];

/// Maximum number of rows of a source, and of sums of other rows. A browser sorts and draws as many without delay.
const MAX_ROWS: usize = 2_000;

/// Maximum number of functions in the tree of calls of a source.
const MAX_CALLS: usize = 10_000;

/// What stands for the processes of the rows that the page has in no sum of their own.
const OTHERS: &str = "[other processes]";

/// Number of parts of the time for which rates are shown.
const PARTS: usize = 200;

/// What the script of the page shows.
#[derive(Serialize)]
struct Page {
    title: String,
    heading: String,
    part_seconds: f64,
    sources: Vec<Source>,
}

#[derive(Serialize)]
struct Source {
    name: String,
    /// How it was sampled, and what was lost.
    account: String,
    /// All events of the source, including those that are not selected.
    events: u64,
    rows: Vec<Row>,
    /// The functions of call stacks; parents come before their children. Without call stacks there are none.
    calls: Vec<Call>,
    omitted: Vec<Omitted>,
    rates: Vec<Track>,
    /// Where memory is slow; none without accesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
}

#[derive(Serialize)]
struct Row {
    process: String,
    module: String,
    symbol: String,
    /// With what it calls; none without call stacks.
    total: Option<f64>,
    /// Share of the wall time in which the process of a sample runs.
    latency: Option<f64>,
    share: f64,
    low: f64,
    high: f64,
    samples: u64,
    events: u64,
    /// The parts of it that are inlined functions, by descending events.
    inlined: Vec<Inlined>,
}

/// The samples of a function that are in functions inlined into it.
#[derive(Serialize)]
struct Inlined {
    /// Names, the innermost last.
    frames: Vec<String>,
    share: f64,
    samples: u64,
    events: u64,
}

/// A function in the tree of calls.
#[derive(Serialize)]
struct Call {
    /// Index of the caller; none for a process.
    caller: Option<usize>,
    name: String,
    module: String,
    kernel: bool,
    /// Events of the function itself, and of called functions that the page does not have.
    events: u64,
}

/// Rows of a module in a process that the page does not have.
#[derive(Serialize)]
struct Omitted {
    process: String,
    module: String,
    rows: u64,
    events: u64,
}

/// The events of a processor in each part of the time.
#[derive(Serialize)]
struct Track {
    processor: u32,
    events: Vec<u64>,
}

/// Writes the page. `selection` says where the types of data are searched for.
pub fn write(
    loaded: &LoadedRecording,
    selection: &SelectionArgs,
    out: &mut dyn Write,
    path: Option<&Path>,
) -> Result<(), Error> {
    let page = page(loaded, selection, path)?;
    // In a script element only `<` can end the data.
    let data = serde_json::to_string(&page)?.replace('<', "\\u003c");
    // A page without accesses has nothing of their part.
    let [section, style, script] =
        if page.sources.iter().any(|source| source.memory.is_some()) { memory::PARTS } else { [""; 3] };
    let joined = |own: &str, of_memory: &str| format!("{own}{of_memory}").trim_end().to_owned();
    // The data comes last, so that nothing in it is taken for a place.
    let html = PAGE
        .replace("{{memory}}\n", section)
        .replace("{{style}}", &joined(STYLE, style))
        .replace("{{script}}", &joined(SCRIPT, script));
    let (before, after) = html.split_once("{{data}}").unwrap_or((&html, ""));
    for part in [before, &data, after] {
        out.write_all(part.as_bytes()).map_err(OutputError::Stream)?;
    }
    Ok(())
}

fn page(loaded: &LoadedRecording, selection: &SelectionArgs, path: Option<&Path>) -> Result<Page, Error> {
    let LoadedRecording { contents, symbol_index, filter, .. } = loaded;
    let accesses = loaded.accesses(path)?;
    let names = loaded.access_names(&accesses, selection)?;
    let aggregate = Aggregate::new(loaded, &FUNCTIONS, Limits { rows: Some(0), ..Limits::default() });
    let failed = |error: ExportError| loaded.export_error(error, None);
    let time = RecordedTime::read(&mut loaded.reopen(path)?).map_err(|error| failed(error.into()))?;
    let rates = match time.map(|time| time.within(&filter.slice)) {
        Some(time) => {
            Some(rates(contents, symbol_index, filter, &mut loaded.reopen(path)?, time, PARTS).map_err(failed)?)
        }
        None => None,
    };
    let sources = loaded.sources().into_iter().zip(&aggregate.sources).map(|(key, source)| {
        let table = Table::new(contents, symbol_index, key, &FUNCTIONS, filter);
        let has_stacks = contents.sample_counts.stack_stats(key).are_recorded();
        let with_children = has_stacks.then(|| Table::with_children(contents, symbol_index, key, &FUNCTIONS, filter));
        let shown = with_children.as_ref().unwrap_or(&table);
        let mut first = shown.first(Limits { rows: Some(MAX_ROWS), ..Limits::default() });
        // A table without call stacks is in the order of latency.
        first.rows.sort_by_key(|row| Reverse(row.total.map_or(row.weight, |total| total.weight).events));
        let latencies = latencies(&table);
        let mut inlined = inlined(&Table::new(contents, symbol_index, key, &INLINED, filter));
        let tracks = rates.iter().flat_map(|rates| &rates.events).filter(|((one, _), _)| *one == key);
        Source {
            name: source.name.clone(),
            account: summary(source, filter.narrows()),
            events: table.total.weight.events,
            rows: first.rows.iter().map(|one| row(one, &latencies, &mut inlined)).collect(),
            calls: if has_stacks { calls(loaded, key) } else { Vec::new() },
            omitted: omitted(&table, &first.rows),
            rates: tracks
                .map(|((_, processor), events)| Track { processor: *processor, events: events.clone() })
                .collect(),
            memory: Memory::new(loaded, &accesses, key, &names),
        }
    });
    Ok(Page {
        title: title(loaded),
        heading: aggregate.recording.text(loaded),
        part_seconds: rates.as_ref().map_or(1.0, |rates| rates.part.as_secs_f64()),
        sources: sources.collect(),
    })
}

/// Returns the tree of calls with the functions of the most events.
fn calls(loaded: &LoadedRecording, source: SampledSource) -> Vec<Call> {
    let LoadedRecording { contents, symbol_index, filter, .. } = loaded;
    let tree = CallTree::new(contents, symbol_index, source, filter);
    // A caller has at least the events of what it calls, and a lower number.
    let mut order: Vec<(usize, CallNode)> = tree.nodes().enumerate().collect();
    order.sort_by_key(|(_, node)| Reverse(node.total.events));
    order.truncate(MAX_CALLS);
    order.sort_unstable_by_key(|(number, _)| *number);
    let place = |number: usize| order.binary_search_by_key(&number, |(number, _)| *number).ok();
    let events = tree.shown_events(|number, _| place(number).is_some());
    let call = |(number, CallNode { parent, function, .. }): &(usize, CallNode)| Call {
        caller: parent.and_then(place),
        name: symbol_index.function_name(*function, contents).into_owned(),
        module: symbol_index.function_module(*function).to_owned(),
        kernel: function.kernel,
        events: events.get(*number).copied().unwrap_or_default(),
    };
    order.iter().map(call).collect()
}

/// Returns the rows of a table that are not `shown`, added up by process and module. If these are too many, those with
/// the fewest events are one.
fn omitted(table: &Table, shown: &[TableRow]) -> Vec<Omitted> {
    let key = |row: &TableRow| (process(row), row.module.clone().unwrap_or_default());
    let mut sums: BTreeMap<(String, String), (u64, u64)> = BTreeMap::new();
    for (group, number) in table.groups() {
        let (rows, events) = sums.entry(key(&group)).or_default();
        *rows += number;
        *events += group.weight.events;
    }
    // The other rows only call.
    for row in shown.iter().filter(|row| row.weight.samples > 0) {
        let (rows, events) = sums.entry(key(row)).or_default();
        *rows -= 1;
        *events -= row.weight.events;
    }
    sums.retain(|_, (rows, _)| *rows > 0);
    let omitted = |((process, module), (rows, events))| Omitted { process, module, rows, events };
    let mut omitted: Vec<Omitted> = sums.into_iter().map(omitted).collect();
    if omitted.len() > MAX_ROWS {
        omitted.sort_by_key(|one| Reverse(one.events));
        let rest = omitted.split_off(MAX_ROWS);
        let sum = |of: fn(&Omitted) -> u64| rest.iter().map(of).sum();
        let (process, module) = (OTHERS.to_owned(), String::new());
        omitted.push(Omitted { process, module, rows: sum(|one| one.rows), events: sum(|one| one.events) });
    }
    omitted
}

fn process(row: &TableRow) -> String {
    let name = row.process_name.as_deref().unwrap_or_default();
    row.process.map_or_else(String::new, |process| Id::from(process).with_name(name))
}

/// Process, module and symbol.
type Function = (String, String, String);

/// Returns the latency of each function, if the parallelism of any sample is known.
fn latencies(table: &Table) -> BTreeMap<Function, f64> {
    let of = |row: TableRow| Some((function(&row), row.latency?));
    if table.total.unknown < table.total.weight.samples {
        table.rows().filter_map(of).collect()
    } else {
        BTreeMap::new()
    }
}

fn function(row: &TableRow) -> Function {
    (process(row), row.module.clone().unwrap_or_default(), row.symbol.clone().unwrap_or_default())
}

/// Returns what is inlined into each function.
fn inlined(table: &Table) -> BTreeMap<Function, Vec<Inlined>> {
    let mut found: BTreeMap<Function, Vec<Inlined>> = BTreeMap::new();
    for row in table.rows() {
        let (process, module) = (process(&row), row.module.unwrap_or_default());
        let Some((symbol, frames)) = row.frames.as_deref().and_then(<[String]>::split_first) else { continue };
        if !frames.is_empty() {
            let (share, samples, events) = (row.share, row.weight.samples, row.weight.events);
            let of = found.entry((process, module, symbol.clone())).or_default();
            of.push(Inlined { frames: frames.to_vec(), share, samples, events });
        }
    }
    for each in found.values_mut() {
        each.sort_by(|one, other| (other.events, &one.frames).cmp(&(one.events, &other.frames)));
    }
    found
}

fn row(row: &TableRow, latencies: &BTreeMap<Function, f64>, inlined: &mut BTreeMap<Function, Vec<Inlined>>) -> Row {
    let function = function(row);
    let inlined = inlined.remove(&function).unwrap_or_default();
    let latency = latencies.get(&function).copied();
    let (process, module, symbol) = function;
    Row {
        process,
        module,
        symbol,
        total: row.total.map(|total| total.share),
        latency,
        share: row.share,
        low: row.interval.low,
        high: row.interval.high,
        samples: row.weight.samples,
        events: row.weight.events,
        inlined,
    }
}

/// Returns the command, or that there was none, and the selected time and processors.
fn title(loaded: &LoadedRecording) -> String {
    let command = loaded.contents.command_text();
    let part = loaded.contents.slice_text(&loaded.filter.slice);
    part.map_or(command.clone(), |part| format!("{command} ({part})"))
}
