//! `report --merge`: shows single samples and precise records in one order.

use std::io;

use protocol::RecordKind;
use report::{CallStacks, Detail, Frame, Limits, SampleLocation, TimelineSample};
use serde::{Serialize, Serializer};

use crate::cli::ReportArgs;
use crate::reading::aggregate::{Aggregate, Header, WithoutSymbols, without_symbols};
use crate::reading::load::LoadedRecording;
use crate::reading::summary::summary;
use terminal::columns::{fitted, shortened};
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{address, counted, real};
use terminal::id::Id;
use user_error::Error;

/// What is before a function in a call stack.
const FRAME_INDENT: &str = "        ";

/// Maximum number of characters of a shortened module.
const MAX_MODULE: usize = 24;

/// Minimum number of characters of a shortened function.
const MIN_NAME: usize = 16;

/// Nanoseconds in a millisecond.
const NANOSECONDS: f64 = 1e6;

/// Names of the fields; the first line of `--csv`.
const FIELDS: [&str; 12] = [
    "processor",
    "time_ns",
    "number",
    "event",
    "kind",
    "process",
    "process_name",
    "thread",
    "inferred",
    "address",
    "module",
    "symbol",
];

const HEADINGS: [&str; 7] = ["CPU", "Time", "Number", "Event", "Kind", "Process", "Symbol"];

/// Headings of the columns with cells that can be shortened.
const NAMES: [&str; 3] = ["Event", "Process", "Symbol"];

/// Headings of the columns of numbers.
const NUMBERS: [&str; 3] = ["CPU", "Time", "Number"];

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Timeline<'a> {
    recording: Header<'a>,
    #[cfg_attr(test, schemars(with = "Vec<TimelineRow>"))]
    samples: Rows<'a>,
    without_symbols: Vec<WithoutSymbols<'a>>,
}

impl Document for Timeline<'_> {
    const SCHEMA: &'static str = "halprof.timeline/1";
}

/// The samples that are shown. Each row is made when it is written, because there can be many.
#[derive(Debug)]
struct Rows<'a> {
    shown: Vec<&'a TimelineSample>,
    loaded: &'a LoadedRecording,
    has_stacks: bool,
}

impl Rows<'_> {
    fn iter(&self) -> impl Iterator<Item = TimelineRow> {
        let LoadedRecording { contents, symbol_index, .. } = self.loaded;
        let mut stacks = self.has_stacks.then(|| CallStacks::new(contents, symbol_index));
        self.shown.iter().map(move |sample| line(sample, self.loaded, stacks.as_mut()))
    }
}

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// A sample or precise record.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TimelineRow {
    processor: u32,
    /// Time since the first record of the recording.
    time_ns: u64,
    /// Number of the precise record, or for an ordinary sample that of the next precise record.
    number: u64,
    event: String,
    kind: &'static str,
    process: Id,
    process_name: String,
    thread: Id,
    /// Whether process and thread were inferred from the neighboring samples.
    inferred: bool,
    address: String,
    module: String,
    symbol: String,
    /// The callers, from the innermost to the outermost, and a note if the stack is not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<Vec<StackFrame>>,
    #[serde(skip)]
    ip: u64,
}

/// A function in a call stack.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StackFrame {
    /// Return address, or the sampled one if the function is inlined there; none for a note.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    module: String,
    /// Name of the function, or the note.
    symbol: String,
    kernel: bool,
    inlined: bool,
}

pub fn run(args: &ReportArgs, context: &mut Context) -> Result<i32, Error> {
    let detail = Detail { stacks: args.calls.stack, ..Detail::default() };
    let (loaded, samples) = LoadedRecording::with_timeline(&args.recording, detail)?;
    let (shown, left) = limited(&samples, args.max_rows().unwrap_or(usize::MAX));
    let samples = Rows { shown, loaded: &loaded, has_stacks: args.calls.stack };
    if args.format.json {
        let without_symbols = without_symbols(&loaded.symbol_index);
        context.json(&Timeline { recording: Header::new(&loaded), samples, without_symbols })?;
    } else if args.format.csv {
        csv(&samples, context)?;
    } else {
        let lines: Vec<TimelineRow> = samples.iter().collect();
        let Aggregate { recording, sources, .. } = Aggregate::new(&loaded, &[], Limits::default());
        context.say(&recording.text(&loaded))?;
        for source in &sources {
            context.say(&format!("\n{}", summary(source, false)))?;
        }
        let rows =
            if lines.is_empty() { "no samples".to_owned() } else { rows(&lines, context.width(args.names.wide)) };
        context.say(&format!("\n{rows}"))?;
        if lines.iter().any(|line| line.inferred) {
            context.say("\n~ inferred: the samples before and after the record have this process and thread")?;
        }
        if left > 0 {
            let left = counted(left as u64, "row");
            context.say(&format!("\n{left} left out; --limit N shows N of each processor"))?;
        }
    }
    loaded.finish(context)
}

/// Returns the first `max` samples of each processor, and the number of the others.
fn limited(samples: &[TimelineSample], max: usize) -> (Vec<&TimelineSample>, usize) {
    let processors = samples.chunk_by(|one, other| one.sample.processor == other.sample.processor);
    let shown: Vec<&TimelineSample> = processors.flat_map(|samples| samples.iter().take(max)).collect();
    let left = samples.len() - shown.len();
    (shown, left)
}

fn line(ordered: &TimelineSample, loaded: &LoadedRecording, stacks: Option<&mut CallStacks>) -> TimelineRow {
    let LoadedRecording { contents, symbol_index, .. } = loaded;
    let sample = &ordered.sample;
    let sampled = contents.sample_counts.source_of(sample);
    let location: SampleLocation = ordered.location(&contents.processes);
    TimelineRow {
        processor: sample.processor,
        time_ns: contents.nanoseconds(sample.time),
        number: ordered.pebs_sequence,
        event: contents.source_name(sampled).into_owned(),
        kind: match ordered.kind {
            RecordKind::Precise => "precise",
            RecordKind::PreciseNext => "precise_next",
            _ => "sample",
        },
        process: sample.process.into(),
        process_name: contents.processes.name_or_unknown(location.process).to_owned(),
        thread: sample.thread.into(),
        inferred: ordered.inferred,
        address: address(sample.ip),
        module: symbol_index.module(&location).to_owned(),
        symbol: symbol_index.symbol(&location).into_owned(),
        stack: stacks.map(|stacks| stack_of(stacks.frames(&location), loaded)),
        ip: sample.ip,
    }
}

/// Returns the frames of a sample without that of the function with the sampled code, which the row has.
fn stack_of(frames: &[Frame], loaded: &LoadedRecording) -> Vec<StackFrame> {
    let LoadedRecording { contents, symbol_index, .. } = loaded;
    let sampled = frames.iter().position(|frame| !frame.function.is_inlined());
    let others = frames.iter().enumerate().filter(|(place, _)| Some(*place) != sampled);
    let frame = |(_, frame): (usize, &Frame)| StackFrame {
        address: frame.function.note().is_none().then(|| address(frame.address)),
        module: symbol_index.function_module(frame.function).to_owned(),
        symbol: symbol_index.function_name(frame.function, contents).into_owned(),
        kernel: frame.function.kernel,
        inlined: frame.function.is_inlined(),
    };
    others.map(frame).collect()
}

/// Formats the process, with a mark if it was inferred.
fn process(line: &TimelineRow) -> String {
    let mark = if line.inferred { "~ " } else { "" };
    format!("{mark}{}", line.process.with_name(&line.process_name))
}

/// Formats the table. It does not distinguish the two kinds of precise records.
fn rows(lines: &[TimelineRow], width: usize) -> String {
    let cells = |line: &TimelineRow| {
        vec![
            line.processor.to_string(),
            format!("{:.3}", real(line.time_ns) / NANOSECONDS),
            line.number.to_string(),
            line.event.clone(),
            line.kind.trim_end_matches("_next").to_owned(),
            process(line),
            // The column is too narrow for leading zeros of an address.
            if line.symbol == line.address { format!("{:#x}", line.ip) } else { line.symbol.clone() },
        ]
    };
    let text = fitted(&HEADINGS, &NUMBERS, &NAMES, lines.iter().map(cells).collect(), width);
    if lines.iter().all(|line| line.stack.is_none()) {
        return text;
    }
    // The headings and their rules have no stacks.
    let stacks = [None, None].into_iter().chain(lines.iter().map(|line| line.stack.as_ref()));
    let with_stack = |(row, stack): (&str, Option<&Vec<StackFrame>>)| {
        let frames = stack.into_iter().flatten().map(|frame| frame_line(frame, width));
        [row.to_owned()].into_iter().chain(frames).collect::<Vec<_>>()
    };
    text.lines().zip(stacks).flat_map(with_stack).collect::<Vec<_>>().join("\n")
}

/// Formats a function in a call stack.
fn frame_line(frame: &StackFrame, width: usize) -> String {
    let module = match &*frame.module {
        "" => String::new(),
        module if width == usize::MAX => format!(" ({module})"),
        module => format!(" ({})", shortened(module, MAX_MODULE)),
    };
    let mark = if frame.inlined { " (inlined)" } else { "" };
    let rest = format!("{mark}{module}");
    let name = shortened(&frame.symbol, width.saturating_sub(FRAME_INDENT.len() + rest.len()).max(MIN_NAME));
    format!("{FRAME_INDENT}{name}{rest}")
}

fn csv(lines: &Rows, context: &mut Context) -> Result<(), Error> {
    let mut out = csv::Writer::from_writer(&mut context.out);
    out.write_record(FIELDS.into_iter().chain(lines.has_stacks.then_some("stack"))).map_err(io::Error::from)?;
    for line in lines.iter() {
        let fields = [
            &*line.processor.to_string(),
            &line.time_ns.to_string(),
            &line.number.to_string(),
            &line.event,
            line.kind,
            &line.process.field(),
            &line.process_name,
            &line.thread.field(),
            if line.inferred { "1" } else { "0" },
            &line.address,
            &line.module,
            &line.symbol,
        ];
        let names = line.stack.as_ref().map(|frames| {
            let names: Vec<&str> = frames.iter().map(|frame| frame.symbol.as_str()).collect();
            names.join(";")
        });
        out.write_record(fields.into_iter().chain(names.as_deref())).map_err(io::Error::from)?;
    }
    Ok(out.flush()?)
}
