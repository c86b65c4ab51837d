//! Folded stacks, and flame graphs, which inferno draws.
//!
//! Without call stacks a line is `process;module;symbol;inlined count`. With call stacks it is
//! `process;outermost caller;...;function count`, where the names of functions in kernel mode end with `_[k]` and those
//! of inlined functions with `_[i]`, as in the lines of FlameGraph's `stackcollapse-perf.pl --all`. A process has its
//! name, so that two runs of a program have the same stacks, or also its number. With a branch history it is
//! `process;function;to newest target;from branch;...;from oldest branch count`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use inferno::flamegraph::color::MultiPalette;
use inferno::flamegraph::{self, Options, Palette};
use recording::printable;

use crate::access_names::AccessNames;
use crate::access_table::{AccessColumn, AccessTable};
use crate::accesses::Accesses;
use crate::call_stacks::Function;
use crate::call_tree::CallTree;
use crate::escape::{frame, plain, stack};
use crate::filter::Filter;
use crate::proportion::real;
use crate::read::Contents;
use crate::sampled_sources::SampledSource;
use crate::symbol_index::SymbolIndex;
use crate::table::{Column, Table, TableRow};

/// The columns of a line without call stacks.
const COLUMNS: [Column; 3] = [Column::Process, Column::Module, Column::Frames];

/// The beginning of the boxes of a flame graph.
const FRAMES: &str = "<svg id=\"frames\"";

/// Marks of functions.
const KERNEL: &str = "_[k]";
const INLINED: &str = "_[i]";

/// The innermost frame of a wait in a graph by wall clock.
pub const WAITS: &str = "[waits]";

/// What stands for the time in which threads ran, if they have no sample.
const NOT_SAMPLED: &str = "[runs, without a sample]";

/// Colors of the palette that knows the marks, in the middle of their ranges, and what they mean.
const COLORS: [(&str, &str); 5] = [
    ("rgb(222,122,0)", "kernel mode"),
    ("rgb(80,192,192)", "inlined"),
    ("rgb(202,202,60)", "name with ::"),
    ("rgb(80,227,80)", "with a dot or a first capital"),
    ("rgb(227,90,90)", "other names"),
];

/// Options of the library have percentages.
const PERCENT: f64 = 100.0;

/// Returns the folded stacks of the samples of `source` that `filter` selects, in ascending order. The count is the
/// number of events, so widths in a flame graph equal the shares in a report. For call stacks,
/// [`Detail::stacks`](crate::Detail::stacks) must have been selected.
#[must_use]
pub fn folded(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    source: impl Into<SampledSource>,
    filter: &Filter,
) -> Vec<String> {
    lines(contents, symbol_index, source.into(), filter, Shown { least: 0.0, numbers: false })
}

/// Returns what [`folded`] returns, with the numbers of the processes.
#[must_use]
pub fn folded_with_numbers(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    source: impl Into<SampledSource>,
    filter: &Filter,
) -> Vec<String> {
    lines(contents, symbol_index, source.into(), filter, Shown { least: 0.0, numbers: true })
}

/// Returns what [`folded_with_numbers`] returns, for a flame graph: functions that are too narrow for it are only a
/// part of their callers, or of their modules.
#[must_use]
pub fn folded_for_graph(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    source: impl Into<SampledSource>,
    filter: &Filter,
) -> Vec<String> {
    let least = Options::default().min_width / PERCENT;
    lines(contents, symbol_index, source.into(), filter, Shown { least, numbers: true })
}

/// Returns the stacks in which threads ran and those in which they waited, for a flame graph by wall clock. Counts are
/// nanoseconds: the samples of the event `on` share the time `run` in which the threads ran, in nanoseconds, and the
/// waits of `off` end in the frame [`WAITS`].
#[must_use]
pub fn wall_clock_for_graph(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    (on, run): (SampledSource, u64),
    off: SampledSource,
    filter: &Filter,
) -> Vec<String> {
    let shown = Shown { least: Options::default().min_width / PERCENT, numbers: true };
    let of = |source| stacks(contents, symbol_index, source, filter, shown);
    let mut ran = of(on);
    if ran.is_empty() {
        ran.push((vec![NOT_SAMPLED.to_owned()], 1));
    }
    let events: u128 = ran.iter().map(|(_, events)| u128::from(*events)).sum();
    let time = |part: u64| u64::try_from(u128::from(part) * u128::from(run) / events.max(1)).unwrap_or(u64::MAX);
    let ran = ran.into_iter().map(|(frames, events)| (frames, time(events)));
    let waited = of(off).into_iter().map(|(mut frames, time)| {
        frames.push(WAITS.to_owned());
        (frames, time)
    });
    sums(ran.chain(waited))
}

/// Returns process, module, function and source of the accesses of `source`, for a flame graph. The count is the cycles
/// for which the loads waited, so widths equal the shares of latency in an [`AccessTable`].
#[must_use]
pub fn folded_latency(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    source: SampledSource,
    accesses: &Accesses,
) -> Vec<String> {
    const COLUMNS: [AccessColumn; 4] =
        [AccessColumn::Process, AccessColumn::Module, AccessColumn::Symbol, AccessColumn::Source];
    let names = AccessNames::default();
    let table = AccessTable::new(accesses.of(source), &COLUMNS, contents, symbol_index, &names);
    let rows = table.first(None).0.into_iter().filter(|row| row.cycles > 0);
    sums(rows.map(|row| (row.cells.iter().map(|cell| frame(cell)).collect(), row.cycles)))
}

/// What is shown of stacks.
#[derive(Clone, Copy)]
struct Shown {
    /// Functions with less than this share of the events are a part of what is around them.
    least: f64,
    /// Whether processes have their numbers.
    numbers: bool,
}

fn lines(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    source: SampledSource,
    filter: &Filter,
    shown: Shown,
) -> Vec<String> {
    sums(stacks(contents, symbol_index, source, filter, shown))
}

/// Returns the frames and the events of stacks.
fn stacks(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    source: SampledSource,
    filter: &Filter,
    Shown { least, numbers }: Shown,
) -> Vec<(Vec<String>, u64)> {
    if contents.has_branch_history || contents.sample_counts.stack_stats(source).are_recorded() {
        let tree = CallTree::new(contents, symbol_index, source, filter);
        let shown = Shown { least: least * real(tree.all().events), numbers };
        return call_stacks(&tree, contents, symbol_index, shown);
    }
    let table = Table::new(contents, symbol_index, source, &COLUMNS, filter);
    let rows = table.rows_of_at_least(least * real(table.selected.events));
    rows.map(|row| (row_frames(&row, numbers), row.weight.events)).collect()
}

/// Returns each path of a tree. Functions with fewer events than `least` are a part of their callers.
fn call_stacks(
    tree: &CallTree,
    contents: &Contents,
    symbol_index: &SymbolIndex,
    Shown { least, numbers }: Shown,
) -> Vec<(Vec<String>, u64)> {
    let events = tree.shown_events(|_, node| real(node.total.events) >= least);
    let of = |function: Function| match function.as_process() {
        Some(process) if !numbers => frame(contents.processes.name_or_unknown(process)),
        _ => call_frame(function, contents, symbol_index),
    };
    let paths = events.into_iter().enumerate().filter(|(_, events)| *events > 0);
    paths.map(|(number, events)| (tree.path(number).into_iter().map(of).collect(), events)).collect()
}

/// Returns the lines of stacks in ascending order. Different processes and functions can have the same name.
fn sums(stacks: impl IntoIterator<Item = (Vec<String>, u64)>) -> Vec<String> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (frames, events) in stacks {
        *lines.entry(stack(&frames)).or_default() += events;
    }
    lines.into_iter().map(|(frames, events)| format!("{frames} {events}")).collect()
}

/// Returns the frame of a function in a call stack, with its mark.
fn call_frame(function: Function, contents: &Contents, symbol_index: &SymbolIndex) -> String {
    let mark = match function {
        _ if function.is_inlined() => INLINED,
        _ if function.kernel => KERNEL,
        _ => "",
    };
    frame(&symbol_index.function_name(function, contents)) + mark
}

fn row_frames(row: &TableRow, numbers: bool) -> Vec<String> {
    let name = row.process_name.clone().unwrap_or_default();
    let process = if numbers { row.process_label() } else { name };
    let module = row.module.as_deref().unwrap_or_default();
    let functions = row.frames.iter().flatten().map(String::as_str);
    [process.as_str(), module].into_iter().chain(functions).map(frame).collect()
}

/// Draws folded stacks as a flame graph in SVG, whose counts have this unit.
///
/// # Errors
/// If there are no stacks or the output cannot be written.
pub fn flamegraph(
    lines: &[String],
    (title, unit): (&str, &str),
    subtitle: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut options = Options::default();
    options.title = printable(title).into_owned();
    options.subtitle = Some(printable(subtitle).into_owned());
    unit.clone_into(&mut options.count_name);
    options.deterministic = true;
    let mut legend = "colors only tell boxes apart".to_owned();
    if lines.iter().any(|line| line.contains(KERNEL) || line.contains(INLINED)) {
        options.colors = Palette::Multi(MultiPalette::Java); // the palette that gives these marks colors of their own
        legend = COLORS.map(|(color, text)| format!("<tspan fill=\"{color}\">&#9632;</tspan> {text} ")).concat();
    }
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)?;
    let svg = plain(&String::from_utf8_lossy(&svg));
    // The library shows the search only where the mouse is, and the matched share at the bottom, far away.
    let svg = svg.replacen("#search { text-anchor:end; opacity:0.1;", "#search { text-anchor:end;", 1);
    let matched =
        svg.split_once("<text id=\"matched\"").and_then(|(_, rest)| rest.split(" y=\"").nth(1)?.split('"').next());
    let svg =
        matched.map_or_else(|| svg.clone(), |y| svg.replace(&format!("x=\"1190\" y=\"{y}\""), "x=\"1190\" y=\"36\""));
    let legend = format!("<text id=\"legend\" x=\"10\" y=\"8\" style=\"font-size:10px\">{legend}</text>{FRAMES}");
    out.write_all(svg.replacen(FRAMES, &legend, 1).as_bytes())
}
