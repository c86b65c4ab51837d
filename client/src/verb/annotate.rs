//! `annotate`: shows the instructions of a function with their samples, like perf annotate.

use std::collections::HashMap;
use std::fmt::Write as _;

use halprof::text::argument::argument;
use pmu::Source;
use recording::RecordedEvent;
use recording::printable;
use report::{
    AnnotatedInstruction, Annotation, AnnotationError, Detail, InstructionCount, ModuleId, NamePattern, Reason,
    SourceLine, Symbol, SymbolFinder, SymbolId, SymbolIndex, Total, have_ranges,
};
use serde::Serialize;
use thiserror::Error as ThisError;

use crate::cli::AnnotateArgs;
use crate::reading::aggregate::Header;
use crate::reading::branch_profile::{compare, read_profiles};
use crate::reading::load::LoadedRecording;
use crate::reading::open::RecordingError;
use crate::verb::report::last_branches::numbers;
use terminal::color::{SOURCE, of_share};
use terminal::columns::shortened;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{counted, grouped, properties, real};
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Column in which instructions and lines of source code begin.
const INDENT: usize = 27;

/// Columns of the numbers that come from last branches, which are before the address.
const BRANCH_COLUMNS: usize = 23;

/// Minimum width of a shortened name.
const NAME: usize = 36;

/// Why there is nothing to annotate.
#[derive(Debug, ThisError)]
pub enum AnnotateError {
    /// No function with samples has the name.
    #[error("no function with samples matches {0}")]
    NoSymbol(String),
    /// The function cannot be disassembled.
    #[error("there is no machine code for {function}")]
    NoCode {
        /// The function with its module.
        function: String,
        /// File name and identity of the image.
        image: String,
        /// Why not.
        #[source]
        cause: AnnotationError,
    },
}

impl UserError for AnnotateError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoSymbol(_) => Exit::NotRecorded,
            Self::NoCode { .. } => Exit::NoCode,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::NoSymbol(_) => Some(".\\client report --sort \"module,symbol\", which lists them".to_owned()),
            Self::NoCode {
                image,
                cause: AnnotationError::NoImage | AnnotationError::Image(Reason::OtherBuild(_)),
                ..
            } => Some(format!("--symbols DIR, with the recorded {image}")),
            Self::NoCode { .. } => None,
        }
    }
}

/// A function with its samples.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Annotated<'a> {
    /// Properties of the recording.
    recording: Header<'a>,
    /// Name of the source, on a hybrid with the core type of the processors.
    source: String,
    function: FunctionFields<'a>,
    /// Which instruction a sample has.
    skid: Skid,
    /// Number of samples of the function.
    samples: u64,
    /// Number of events that they represent.
    events: u64,
    /// Events as a share of all events of the source, from 0 to 1.
    share: f64,
    /// Samples of the symbol at addresses outside the function, which are in no instruction.
    samples_outside: u64,
    instructions: Vec<InstructionFields>,
    /// Number of instructions that are shown as bytes.
    #[serde(skip)]
    newer: usize,
    /// What is said of the last branches, if the recording has them.
    #[serde(skip)]
    branches: Vec<(&'static str, String)>,
}

impl Document for Annotated<'_> {
    const SCHEMA: &'static str = "halprof.annotate/1";
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FunctionFields<'a> {
    name: &'a str,
    module: &'a str,
    /// The file with the machine code.
    image: String,
}

/// Distance of a sample from the instruction that made the event happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Skid {
    /// The instruction at which the interrupt came.
    Interrupt,
    /// The instruction that made the event happen.
    None,
    /// The instruction after the one that made the event happen.
    Next,
    /// Several of these, by sample.
    Mixed,
    /// The instruction at which the timer expired; no event made it happen.
    Timer,
}

impl Skid {
    fn of(event: Option<&RecordedEvent>, total: &Total) -> Self {
        match (total.precise, total.precise_next) {
            _ if event.is_some_and(|event| event.source == Source::TIME.0) => Self::Timer,
            (0, 0) => Self::Interrupt,
            (precise, 0) if precise == total.weight.samples => Self::None,
            (0, next) if next == total.weight.samples => Self::Next,
            _ => Self::Mixed,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Self::Interrupt => {
                "addresses are those at which the interrupt came: after the\n\
                 instruction that made the event happen (record -e X:p has that)"
            }
            Self::None => "0: the instruction that made the event happen",
            Self::Next => "the instruction after the one that made the event happen",
            Self::Mixed => {
                "differs: some samples have the instruction that made the event\nhappen, others one after it"
            }
            Self::Timer => "the instruction at which the timer interrupted",
        }
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct InstructionFields {
    /// Address relative to the base of the module, in hexadecimal.
    address: String,
    /// Number of bytes.
    length: usize,
    /// The instruction in Intel's syntax.
    text: String,
    /// Name of the function to which it branches, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<String>,
    /// Number of samples.
    samples: u64,
    /// Number of events that they represent.
    events: u64,
    /// Events as a share of those of the function, from 0 to 1.
    share: f64,
    /// The line of source code, if the symbols have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<LineFields>,
    /// What the last branches of the samples say of it; absent if there are none in the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    branches: Option<BranchFields>,
}

/// What the last branches of samples say of an instruction.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct BranchFields {
    /// How often it ran as a part of the code between two branches; `None` if the recording has not all kinds of them.
    executions: Option<u64>,
    /// How often it was a branch that was taken.
    taken: u64,
    /// Share of the mispredicted ones among the records that say whether it was predicted; `None` if none does.
    mispredicted: Option<f64>,
    /// Mean of the core clock cycles of the code that ends at it; `None` if no record has them.
    cycles: Option<f64>,
    /// Standard error of the mean; `None` if fewer than two records have cycles.
    cycles_error: Option<f64>,
    /// Instructions per cycle of this code.
    ipc: Option<f64>,
}

impl BranchFields {
    fn new(count: &InstructionCount, have_ranges: bool) -> Self {
        let InstructionCount { executions, taken, blocks, ipc } = count;
        Self {
            executions: have_ranges.then_some(*executions),
            taken: taken.count,
            mispredicted: (taken.reported > 0).then(|| real(taken.mispredicted) / real(taken.reported)),
            cycles: blocks.mean_cycles(),
            cycles_error: blocks.standard_error(),
            ipc: *ipc,
        }
    }
}

/// A line of source code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LineFields {
    /// The file, as the compiler recorded it.
    file: String,
    /// Number of the line.
    number: u32,
    /// Function of the line, if it is inlined.
    #[serde(skip_serializing_if = "Option::is_none")]
    inlined: Option<String>,
}

impl From<SourceLine> for LineFields {
    fn from(SourceLine { file, line, inlined }: SourceLine) -> Self {
        Self { file, number: line, inlined }
    }
}

pub fn run(args: &AnnotateArgs, context: &mut Context) -> Result<i32, Error> {
    let mut loaded = LoadedRecording::open(&args.recording, Detail::default())?;
    let source = loaded.one_source()?;
    // Samples and last branches are of the same source.
    (loaded.filter.events, loaded.filter.core_type) = (Some([source.event].into()), Some(source.core_type));
    let (id, symbol) = find(&args.function, &loaded.symbol_index)?;
    let module = loaded.symbol_index.modules().name(symbol.module);
    let finder = loaded.finder(&args.recording.selection)?;
    let annotation = Annotation::new(&loaded.contents, &loaded.symbol_index, id, source, &loaded.filter, &finder)
        .map_err(|cause| no_code(symbol, &loaded.symbol_index, cause))?;
    let total = loaded.contents.sample_counts.total(source);
    let (events, all) = (real(annotation.total.events), real(total.weight.events));
    let branches = last_branches(&loaded, symbol.module, &annotation, &finder)?;
    let mut of_instructions = branches.instructions.into_iter();
    let instruction = |one: &AnnotatedInstruction| InstructionFields {
        address: format!("{:#x}", one.address),
        length: one.length,
        text: one.text.clone(),
        target: one.target.clone(),
        samples: one.weight.samples,
        events: one.weight.events,
        share: if events > 0.0 { real(one.weight.events) / events } else { 0.0 },
        line: one.source.clone().map(LineFields::from),
        branches: of_instructions.next(),
    };
    let annotated = Annotated {
        recording: Header::new(&loaded),
        source: loaded.contents.source_name(source).into_owned(),
        function: FunctionFields { name: &symbol.name, module, image: annotation.image.display().to_string() },
        skid: Skid::of(loaded.contents.event(source), &total),
        samples: annotation.total.samples,
        events: annotation.total.events,
        share: if all > 0.0 { events / all } else { 0.0 },
        samples_outside: annotation.outside.samples,
        instructions: annotation.instructions.iter().map(instruction).collect(),
        newer: annotation.instructions.iter().filter(|one| one.is_newer).count(),
        branches: branches.lines,
    };
    if args.format.json {
        context.json(&annotated)?;
    } else {
        let text = text(&annotated, &mut SourceFiles::new(&finder), context.width(false));
        context.say_painted(&text)?;
    }
    loaded.finish(context)
}

/// What the last branches of the selected samples say of a function.
#[derive(Default)]
struct FunctionBranches {
    /// What is said of them all.
    lines: Vec<(&'static str, String)>,
    /// What they say of each instruction; empty if there are none in the module.
    instructions: Vec<BranchFields>,
}

/// Returns what the last branches say of a function.
fn last_branches(
    loaded: &LoadedRecording,
    module: ModuleId,
    annotation: &Annotation,
    finder: &SymbolFinder,
) -> Result<FunctionBranches, Error> {
    let mut branches = FunctionBranches::default();
    let session = &loaded.contents.session;
    if session.last_branches == 0 {
        return Ok(branches);
    }
    let profiles = read_profiles(loaded)?;
    branches.lines = numbers(profiles.stats);
    if !have_ranges(session) {
        branches.lines.push(("Runs", "unknown: the recording has some kinds of branches only".to_owned()));
    }
    if let Some(mut profile) = profiles.modules.into_iter().find(|profile| profile.module == module) {
        if let Err(reason) = compare(&mut profile, loaded, finder) {
            branches.lines.push(("", format!("not compared with the code: {reason}")));
        }
        let offsets: Vec<u32> = annotation.instructions.iter().map(|one| one.address).collect();
        let counts = profile.instructions(&offsets);
        branches.instructions = counts.iter().map(|count| BranchFields::new(count, have_ranges(session))).collect();
    }
    Ok(branches)
}

/// Returns the function that the user named: the only one that has the name, matches it, or has it as a part.
fn find<'a>(given: &str, symbol_index: &'a SymbolIndex) -> Result<(SymbolId, &'a Symbol), Error> {
    let module_of = |symbol: &Symbol| symbol_index.modules().name(symbol.module).to_owned();
    let mut all: Vec<(SymbolId, &Symbol)> = symbol_index.symbol_ids().collect();
    let matches = |pattern: &NamePattern, (_, symbol): (SymbolId, &Symbol)| {
        pattern.matches(&symbol.name) || pattern.matches(&symbol.text())
    };
    let mut found = NamePattern::new(given).resolve(&all, matches);
    if let ([], Some((module, name))) = (&found[..], given.split_once('!')) {
        let module = NamePattern::new(module);
        all.retain(|(_, symbol)| module.matches_file(&module_of(symbol)));
        found = NamePattern::new(name).resolve(&all, matches);
    }
    match &found[..] {
        [one] => Ok(*one),
        [] => Err(AnnotateError::NoSymbol(given.to_owned()).into()),
        several => {
            let mut names: Vec<String> =
                several.iter().map(|(_, symbol)| format!("{}!{}", module_of(symbol), symbol.name)).collect();
            names.sort_unstable();
            let first = names.first().map(String::as_str).unwrap_or_default();
            let remedy = format!(".\\client annotate {}", argument(first));
            Err(RecordingError::Ambiguous { given: given.to_owned(), names, remedy }.into())
        }
    }
}

fn no_code(symbol: &Symbol, symbol_index: &SymbolIndex, cause: AnnotationError) -> AnnotateError {
    let module = symbol_index.modules().get(symbol.module);
    let name = symbol_index.modules().name(symbol.module);
    let identity = module.map_or_else(String::new, |module| {
        format!(" (time stamp {:08X}, size {:#x})", module.timestamp, module.image_size)
    });
    AnnotateError::NoCode { function: format!("{name}!{}", symbol.name), image: format!("{name}{identity}"), cause }
}

/// Source files by their recorded paths.
struct SourceFiles<'a> {
    finder: &'a SymbolFinder,
    files: HashMap<String, Option<Vec<String>>>,
}

impl<'a> SourceFiles<'a> {
    fn new(finder: &'a SymbolFinder) -> Self {
        Self { finder, files: HashMap::new() }
    }

    /// Returns the text of a line, if the file is found.
    fn line(&mut self, file: &str, number: u32) -> Option<&str> {
        let lines = self.files.entry(file.to_owned()).or_insert_with(|| self.finder.source_file(file));
        let index = usize::try_from(number).ok()?.checked_sub(1)?;
        lines.as_ref()?.get(index).map(|line| line.trim())
    }
}

/// Formats a function with the escape sequences of colors.
fn text(annotated: &Annotated, sources: &mut SourceFiles, width: usize) -> String {
    let FunctionFields { name, module, image } = &annotated.function;
    let share = format!("{:.2}%", annotated.share * 100.0);
    let samples = counted(annotated.samples, "sample");
    let mut head = vec![
        ("Function", format!("{name} in {module}")),
        ("Samples", format!("{samples}, {share} of the events of {}", annotated.source)),
        ("Image", printable(image).into_owned()),
    ];
    for (index, line) in annotated.skid.text().lines().enumerate() {
        head.push((if index == 0 { "Skid" } else { "" }, line.to_owned()));
    }
    if annotated.samples_outside > 0 {
        let outside = counted(annotated.samples_outside, "sample");
        head.push(("Outside", format!("{outside} behind the function, where the symbols have no name")));
    }
    if annotated.newer > 0 {
        let newer = counted(annotated.newer as u64, "instruction");
        head.push(("Decoder", format!("{newer} of APX or AVX10.2, which it does not know, as bytes")));
    }
    head.extend(annotated.branches.iter().cloned());
    let mut text = properties(&head);
    let has_branches = annotated.instructions.iter().any(|one| one.branches.is_some());
    let (names, rules) = if has_branches { ("     Runs  Cycles   IPC", "  -------  ------  ----") } else { ("", "") };
    let _ = write!(
        text,
        "\n\n  Share  Samples{names}  Address  Instruction\n-------  -------{rules}  -------  -----------"
    );
    let indent = INDENT + if has_branches { BRANCH_COLUMNS } else { 0 };
    let mut last = None;
    for one in &annotated.instructions {
        if one.line.is_some() && one.line != last {
            last.clone_from(&one.line);
            if let Some(line) = &one.line {
                // Writing to a `String` cannot fail.
                let _ = write!(text, "\n{}", source_text(line, sources, indent, width));
            }
        }
        let _ = write!(text, "\n{}", instruction_text(one, indent, width));
        if let Some(branches) = one.branches.as_ref().filter(|branches| branches.taken > 0) {
            let _ = write!(text, "\n{:indent$}{}", "", taken_text(branches));
        }
    }
    text
}

/// Formats how often a branch was taken, and how often that was not predicted.
fn taken_text(branches: &BranchFields) -> String {
    let times = counted(branches.taken, "time");
    let share = branches.mispredicted.map(|share| format!(", {:.2}% mispredicted", share * 100.0));
    format!("taken {times}{}", share.unwrap_or_default())
}

fn source_text(line: &LineFields, sources: &mut SourceFiles, indent: usize, width: usize) -> String {
    let file = line.file.rsplit(['/', '\\']).next().unwrap_or(&line.file);
    let room = (width / 2).max(NAME);
    let inlined =
        line.inlined.as_ref().map_or_else(String::new, |name| format!(" (inlined {})", shortened(name, room)));
    let code = sources.line(&line.file, line.number).filter(|code| !code.is_empty());
    let code = code.map_or_else(String::new, |code| format!("  {code}"));
    format!("{:indent$}{SOURCE}{}{SOURCE:#}", "", printable(&format!("{file}:{}{inlined}{code}", line.number)))
}

fn instruction_text(one: &InstructionFields, indent: usize, width: usize) -> String {
    let style = of_share(one.share);
    let numbers = match one.samples {
        0 => " ".repeat(16),
        samples => format!("{style}{:6.2}%{style:#}  {:>7}", one.share * 100.0, grouped(samples)),
    };
    let branches = one.branches.as_ref().map_or_else(String::new, |branches| {
        let BranchFields { executions, cycles, ipc, .. } = branches;
        let runs = executions.filter(|runs| *runs > 0).map_or_else(String::new, grouped);
        let cycles = cycles.map_or_else(String::new, |cycles| format!("{cycles:.1}"));
        let ipc = ipc.map_or_else(String::new, |ipc| format!("{ipc:.2}"));
        format!("  {runs:>7}  {cycles:>6}  {ipc:>4}")
    });
    let room = width.saturating_sub(indent + one.text.len() + " <>".len());
    let target = one.target.as_ref().map_or_else(String::new, |name| format!(" <{}>", shortened(name, room.max(NAME))));
    format!("{numbers}{branches}  {:>7}  {}{target}", one.address.trim_start_matches("0x"), one.text)
}

#[cfg(test)]
mod tests {
    use report::SampleWeight;

    use super::*;

    #[test]
    fn the_skid_is_told_for_every_kind_of_sample() {
        let total = |samples, precise, precise_next| Total {
            weight: SampleWeight { samples, events: 1 },
            precise,
            precise_next,
            squares: 1,
            ..Total::default()
        };
        let of = |source, total: Total| {
            let (name, modes, interval, frequency, core_type) = (String::new(), 0, 0, 0, 0);
            Skid::of(Some(&RecordedEvent { source, name, modes, interval, frequency, core_type }), &total)
        };
        for (counts, wanted) in [
            ((5, 0, 0), Skid::Interrupt),
            ((5, 5, 0), Skid::None),
            ((5, 0, 5), Skid::Next),
            ((5, 2, 3), Skid::Mixed),
            ((5, 2, 0), Skid::Mixed),
        ] {
            assert_eq!(of(2, total(counts.0, counts.1, counts.2)), wanted, "{counts:?}");
        }
        assert_eq!(of(Source::TIME.0, total(5, 0, 0)), Skid::Timer);
        for skid in [Skid::Interrupt, Skid::None, Skid::Next, Skid::Mixed, Skid::Timer] {
            assert!(skid.text().lines().all(|line| line.len() <= 70), "{skid:?}");
        }
    }
}
