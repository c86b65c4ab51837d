//! `report --blocks`: shows the code that ran between two of the last branches of samples.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io;

use report::{
    BlockCount, BranchProfile, Detail, LastBranchStats, ModuleId, SampleLocation, SourceLine, SymbolFinder, SymbolIndex,
};
use serde::Serialize;

use crate::cli::ReportArgs;
use crate::reading::aggregate::{Header, WithoutSymbols, without_symbols};
use crate::reading::branch_profile::{compare, module_profiles};
use crate::reading::load::LoadedRecording;
use crate::reading::losses::finish_export;
use crate::reading::selection::resolved_names;
use crate::verb::branch_end::{BranchEnd, real_field};
use crate::verb::report::last_branches::numbers;
use terminal::color;
use terminal::columns::fitted;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{counted, grouped, properties, real};
use user_error::Error;

/// Names of the fields; the first line of `--csv`.
const FIELDS: [&str; 15] = [
    "executions",
    "share",
    "cycles_share",
    "cycles",
    "cycles_error",
    "instructions",
    "ipc",
    "begin_address",
    "begin_module",
    "begin_symbol",
    "end_address",
    "end_module",
    "end_symbol",
    "file",
    "line",
];

const HEADINGS: [&str; 10] = ["Time", "Share", "Runs", "Cycles", "SE", "IPC", "Symbol", "Block", "Module", "Line"];

/// Places of the columns with the shares of the cycles and of the executions.
const TIME: usize = 0;
const SHARE: usize = 1;

/// Headings of the columns with cells that can be shortened.
const NAMES: [&str; 3] = ["Symbol", "Module", "Line"];

/// Maximum number of modules that the text names because their code is missing.
const MAX_MODULES: usize = 3;

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BlockReport<'a> {
    recording: Header<'a>,
    /// Number of selected samples with branches.
    samples: u64,
    /// Number of their branches, without those that were cut.
    records: u64,
    /// Number of samples of which branches were cut, because their process cannot have them.
    cut_samples: u64,
    /// Number of branches that were cut.
    cut: u64,
    /// Number of executions of blocks. Other options than --module and --symbol select their samples.
    executions: u64,
    /// Number of pairs of successive branches between which the code is in no module, or which are in two.
    outside: u64,
    /// Number of pairs of successive branches between which the code cannot run without another taken branch.
    broken: u64,
    /// Number of blocks, also of those that are not shown.
    #[serde(rename = "different")]
    distinct: usize,
    blocks: Vec<BlockRow>,
    /// Whether any execution has cycles.
    #[serde(skip)]
    has_cycles: bool,
    /// Modules whose code was not compared with the branches: their blocks have no instructions.
    without_code: Vec<WithoutCode>,
    without_symbols: Vec<WithoutSymbols<'a>>,
}

impl Document for BlockReport<'_> {
    const SCHEMA: &'static str = "halprof.blocks/1";
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BlockRow {
    executions: u64,
    /// Share of the executions of all blocks, from 0 to 1.
    share: f64,
    /// Share of the cycles of all blocks, from 0 to 1; `None` if no execution has them.
    cycles_share: Option<f64>,
    /// Mean of the core clock cycles of an execution; `None` if none has them.
    cycles: Option<f64>,
    /// Standard error of the mean; `None` if fewer than two executions have cycles.
    cycles_error: Option<f64>,
    /// Number of instructions, with the branch at the end; `None` without the code.
    instructions: Option<u32>,
    /// Instructions per cycle.
    ipc: Option<f64>,
    begin: BranchEnd,
    /// The branch instruction at its end.
    end: BranchEnd,
    /// File of the source code at the begin, as the compiler recorded it.
    file: Option<String>,
    /// Number of the line.
    line: Option<u32>,
    /// The symbol at the begin.
    #[serde(skip)]
    name: String,
    /// The offsets in it.
    #[serde(skip)]
    range: String,
}

/// A module without code.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct WithoutCode {
    module: String,
    reason: String,
}

/// A block of a module.
struct Block {
    module: ModuleId,
    offset: u32,
    begin: SampleLocation,
    end: SampleLocation,
    count: BlockCount,
}

pub fn run(args: &ReportArgs, context: &mut Context) -> Result<i32, Error> {
    let mut loaded = LoadedRecording::with_branches_unresolved(&args.recording, Detail::default())?;
    let mut profiles = module_profiles(&loaded)?;
    let finder = loaded.finder(&args.recording.selection)?;
    let mut without_code = Vec::new();
    for profile in profiles.modules.iter_mut().filter(|profile| !profile.ranges.is_empty()) {
        if let Err(reason) = compare(profile, &loaded, &finder) {
            let module = loaded.contents.processes.modules().name(profile.module).to_owned();
            without_code.push(WithoutCode { module, reason });
        }
    }
    let all: Vec<Block> = profiles.modules.iter().flat_map(blocks).collect();
    let LoadedRecording { contents, filter, symbol_index, .. } = &mut loaded;
    let ends = all.iter().flat_map(|block| [block.begin, block.end]);
    *symbol_index = SymbolIndex::of(&contents.processes, ends, &finder);
    let begins = all.iter().map(|block| (block.begin, block.count.count));
    filter.symbols = resolved_names(filter, begins, symbol_index)?;
    let sum = |number: fn(&BlockCount) -> u64| all.iter().map(|block| number(&block.count)).sum();
    let (executions, cycles) = (sum(|count| count.count), sum(|count| count.cycles));
    let mut selected: Vec<&Block> =
        all.iter().filter(|block| filter.selects_names(&block.begin, symbol_index)).collect();
    selected.sort_by_key(|block| (Reverse((block.count.cycles, block.count.count)), block.begin.ip, block.end.ip));
    let distinct = selected.len();
    selected.truncate(args.max_rows().unwrap_or(usize::MAX));
    let mut lines = source_lines(&selected, &loaded, &finder);
    let row =
        |block: &&Block| BlockRow::new(block, (executions, cycles), lines.remove(&key(block)), &loaded.symbol_index);
    let LastBranchStats { samples, branches, cut_samples, cut } = profiles.stats;
    let report = BlockReport {
        recording: Header::new(&loaded),
        samples,
        records: branches,
        cut_samples,
        cut,
        executions,
        outside: profiles.outside,
        broken: profiles.modules.iter().map(|profile| profile.broken).sum(),
        distinct,
        blocks: selected.iter().map(row).collect(),
        has_cycles: cycles > 0,
        without_code,
        without_symbols: without_symbols(&loaded.symbol_index),
    };
    if args.format.json {
        context.json(&report)?;
    } else if args.format.csv {
        csv(&report.blocks, context)?;
    } else {
        context.say(&report.recording.text(&loaded))?;
        context.say_painted(&format!("\n{}", text(&report, context.width(args.names.wide))))?;
    }
    finish_export(&loaded, context)
}

/// Returns the blocks of a module.
fn blocks(profile: &BranchProfile) -> impl Iterator<Item = Block> {
    profile.ranges.iter().map(|((begin, end), count)| Block {
        module: profile.module,
        offset: *begin,
        begin: profile.location(*begin),
        end: profile.location(*end),
        count: *count,
    })
}

fn key(block: &Block) -> (ModuleId, u64, u64) {
    (block.module, block.begin.ip, block.end.ip)
}

/// Returns the lines of source code at which the blocks begin, where symbols have them.
fn source_lines(
    blocks: &[&Block],
    loaded: &LoadedRecording,
    finder: &SymbolFinder,
) -> BTreeMap<(ModuleId, u64, u64), SourceLine> {
    let mut by_module: BTreeMap<ModuleId, Vec<&Block>> = BTreeMap::new();
    for block in blocks {
        by_module.entry(block.module).or_default().push(block);
    }
    let mut lines = BTreeMap::new();
    for (module, blocks) in by_module {
        let Some(module) = loaded.contents.processes.modules().get(module) else { continue };
        let offsets: Vec<u32> = blocks.iter().map(|block| block.offset).collect();
        let found = blocks.iter().zip(finder.source_lines(module, &offsets));
        lines.extend(found.filter_map(|(block, line)| Some((key(block), line?))));
    }
    lines
}

impl BlockRow {
    fn new(
        block: &Block,
        (executions, cycles): (u64, u64),
        source: Option<SourceLine>,
        symbol_index: &SymbolIndex,
    ) -> Self {
        let Block { begin, end, count, .. } = block;
        let [(name, first), (other, last)] = [begin, end].map(|location| {
            let text = symbol_index.symbol_and_offset(location);
            let (name, offset) = text.rsplit_once("+0x").unwrap_or((&text, "0"));
            (name.to_owned(), format!("+0x{offset}"))
        });
        let other = if other == name { "" } else { &other };
        Self {
            executions: count.count,
            share: real(count.count) / real(executions),
            cycles_share: (cycles > 0).then(|| real(count.cycles) / real(cycles)),
            cycles: count.mean_cycles(),
            cycles_error: count.standard_error(),
            instructions: count.instructions,
            ipc: count.ipc(),
            begin: BranchEnd::of(begin, symbol_index),
            end: BranchEnd::of(end, symbol_index),
            range: format!("{first}..{other}{last}"),
            name,
            line: source.as_ref().map(|source| source.line),
            file: source.map(|source| source.file),
        }
    }

    fn cells(&self) -> Vec<String> {
        let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        let percent = |share: f64| format!("{:.2}%", share * 100.0);
        let file = self.file.as_ref().map(|file| file.rsplit(['/', '\\']).next().unwrap_or(file));
        let line = file.zip(self.line).map_or_else(String::new, |(file, line)| format!("{file}:{line}"));
        vec![
            or_dash(self.cycles_share.map(percent)),
            percent(self.share),
            grouped(self.executions),
            or_dash(self.cycles.map(|cycles| format!("{cycles:.1}"))),
            or_dash(self.cycles_error.map(|error| format!("{error:.2}"))),
            or_dash(self.ipc.map(|ipc| format!("{ipc:.2}"))),
            self.name.clone(),
            self.range.clone(),
            self.begin.module.clone(),
            line,
        ]
    }
}

/// Formats the blocks with the escape sequences of colors.
fn text(report: &BlockReport, width: usize) -> String {
    let BlockReport { samples, records, cut_samples, cut, executions, outside, broken, .. } = *report;
    let mut lines = numbers(LastBranchStats { samples, branches: records, cut_samples, cut });
    lines.push(("Blocks", format!("{} executions between two branches", grouped(executions))));
    if executions > 0 && !report.has_cycles {
        lines.push(("Cycles", "not in the records".to_owned()));
    }
    let pairs = executions + outside + broken;
    for (count, why) in
        [(outside, "in no module, or from one to another"), (broken, "the code leaves the range: a branch is missing")]
    {
        if count > 0 {
            let share = format!("{:.2}%", real(count) / real(pairs) * 100.0);
            lines.push(("No block", format!("{} of {} pairs, {share}: {why}", grouped(count), grouped(pairs))));
        }
    }
    let (first, more) = report.without_code.split_at(report.without_code.len().min(MAX_MODULES));
    lines.extend(first.iter().map(|WithoutCode { module, reason }| ("No code", format!("{module}: {reason}"))));
    if !first.is_empty() {
        let more =
            if more.is_empty() { String::new() } else { format!("{} more; ", counted(more.len() as u64, "module")) };
        lines.push(("", format!("{more}their blocks are as recorded, without IPC")));
    }
    let mut parts = vec![properties(&lines)];
    parts.push(match &report.blocks[..] {
        [] => "no blocks".to_owned(),
        rows => color::table(&table(rows, width)),
    });
    if let more @ 1.. = report.distinct - report.blocks.len() {
        parts.push(format!("{} left out; --limit N shows N", counted(more as u64, "row")));
    }
    parts.join("\n\n")
}

/// Formats the rows, without the columns that no row has: those of cycles, code or lines. Beside cycles the share of
/// the executions is left out: 80 columns have no room for it, and the executions are there.
fn table(rows: &[BlockRow], width: usize) -> String {
    let rows: Vec<Vec<String>> = rows.iter().map(BlockRow::cells).collect();
    let has_value =
        |row: &Vec<String>, column: usize| row.get(column).is_some_and(|cell| !cell.is_empty() && cell != "-");
    let is_there = |column: usize| rows.iter().any(|row| has_value(row, column));
    let is_shown: Vec<bool> =
        (0..HEADINGS.len()).map(|column| is_there(column) && (column != SHARE || !is_there(TIME))).collect();
    let headings: Vec<&str> = shown(HEADINGS, &is_shown);
    let rows = rows.into_iter().map(|row| shown(row, &is_shown)).collect();
    fitted(&headings, &HEADINGS[..6], &NAMES, rows, width)
}

/// Returns the parts that are shown.
fn shown<T>(parts: impl IntoIterator<Item = T>, is_shown: &[bool]) -> Vec<T> {
    parts.into_iter().zip(is_shown).filter(|(_, is_shown)| **is_shown).map(|(part, _)| part).collect()
}

fn csv(rows: &[BlockRow], context: &mut Context) -> Result<(), Error> {
    let mut out = csv::Writer::from_writer(&mut context.out);
    out.write_record(FIELDS).map_err(io::Error::from)?;
    for row in rows {
        let number = |value: Option<u32>| value.map_or_else(String::new, |value| value.to_string());
        let numbers = [
            row.executions.to_string(),
            format!("{:.6}", row.share),
            real_field(row.cycles_share),
            real_field(row.cycles),
            real_field(row.cycles_error),
            number(row.instructions),
            real_field(row.ipc),
        ];
        let [file, line] = [row.file.clone().unwrap_or_default(), number(row.line)];
        let ends = row.begin.fields().into_iter().chain(row.end.fields());
        let fields = numbers.iter().map(String::as_str).chain(ends).chain([&*file, &*line]);
        out.write_record(fields).map_err(io::Error::from)?;
    }
    Ok(out.flush()?)
}
