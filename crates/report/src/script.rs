//! Single samples as text in the format of `perf script`, which FlameGraph's `stackcollapse-perf.pl`, inferno,
//! speedscope and Perfetto read:
//!
//! ```text
//! app.exe 1788/1792 [001]     0.004000100:     100003 TotalCycles:
//!         7ff8310005c0 alpha+0x40 (workload.exe)
//!         7ff831000123 main+0x23 (workload.exe)
//! ```
//!
//! The names of modules in kernel mode are in brackets. With last branches, a line follows that has them as perf's
//! field `brstack` does: source, target, `P` predicted or `M` mispredicted, two marks of transactions, which are not
//! recorded, and cycles; the newest first.
//!
//! ```text
//!  0x7ff831000083/0x7ff831000040/P/-/-/12 0x7ff83100000a/0x7ff831000019/M/-/-/3
//! ```

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use protocol::{AnySample, BranchRecord, Prediction, Record};
use rustc_hash::FxHashMap;

use crate::call_stacks::{CallStacks, Frame};
use crate::escape::{self, command, word};
use crate::filter::Filter;
use crate::input::Input;
use crate::last_branches::{BranchGate, LastBranchStats};
use crate::locations::SampleLocation;
use crate::module_names::Symbol;
use crate::process_keys::ProcessKey;
use crate::read::{Contents, ExportError};
use crate::symbol_index::{JIT, SymbolIndex};
use crate::time_order::for_each_in_order;

/// What perf prints for a function that it does not know.
const UNKNOWN_SYMBOL: &str = "[unknown]";

/// Maximum number of stacks of which the text is kept.
const MAX_TEXTS: usize = 1 << 14;

/// Nanoseconds per second.
const NANOSECONDS: u64 = 1_000_000_000;

/// Writes the samples that `filter` selects. `input` is the recording from which `contents` was read. The period of a
/// sample is the number of its events. The lines of its call stack are from the innermost function to the outermost
/// one, with their return addresses; a function that is inlined has a line of its own, and a stack that is not complete
/// ends with a [note](crate::StackNote).
///
/// # Errors
/// If the recording cannot be read again or the output cannot be written.
pub fn script(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: &mut dyn Input,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    write(contents, symbol_index, filter, input, out, false).map(|_| ())
}

/// Writes what [`script`] does, and behind each sample a line with its last branches, without those that its process
/// cannot have. Returns what became of the branches.
///
/// # Errors
/// As of [`script`].
pub fn script_with_branches(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: &mut dyn Input,
    out: &mut dyn Write,
) -> Result<LastBranchStats, ExportError> {
    write(contents, symbol_index, filter, input, out, true)
}

/// A sample whose branches can follow: records of several processors can have its time.
struct Waiting {
    sample: AnySample,
    text: Vec<u8>,
    /// Whether it is a sample of a counter: precise ones have no branches.
    has_branches: bool,
    branches: String,
}

impl Waiting {
    /// Returns whether the branch is of this sample. A precise one with its time can be between the two.
    fn is_of(&self, branch: &BranchRecord) -> bool {
        self.has_branches && self.sample.processor == branch.processor
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&self.text)?;
        if !self.branches.is_empty() {
            writeln!(out, "{}", self.branches)?;
        }
        writeln!(out)
    }
}

fn write(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: &mut dyn Input,
    out: &mut dyn Write,
    has_branches: bool,
) -> Result<LastBranchStats, ExportError> {
    let mut stacks = CallStacks::new(contents, symbol_index);
    let mut texts: FxHashMap<SampleLocation, String> = FxHashMap::default();
    let mut gate = BranchGate::default();
    let mut waiting: Vec<Waiting> = Vec::new();
    for_each_in_order(contents, symbol_index, filter, input, |record, stack| {
        if let Record::LastBranch(branch) = record
            && has_branches
            && gate.admit(branch, &contents.processes).is_some()
            && let Some(one) = waiting.iter_mut().rfind(|one| one.is_of(branch))
        {
            one.branches += &branch_text(branch);
        }
        let Some(sample) = record.sample() else { return Ok(()) };
        if waiting.first().is_some_and(|one| one.sample.time != sample.time) {
            waiting.drain(..).try_for_each(|one| one.write(out))?;
        }
        let is_of_counter = matches!(record, Record::Sample(_));
        if is_of_counter && has_branches {
            gate.open(sample, contents.processes.at(sample.process, sample.time));
        }
        let location = SampleLocation { stack, ..contents.processes.location(&sample) };
        if texts.len() >= MAX_TEXTS {
            texts.clear();
        }
        let text = texts.entry(location).or_insert_with(|| text(stacks.frames(&location), contents, symbol_index));
        let mut lines = Vec::new();
        heading(&sample, location.process, contents, &mut lines)?;
        lines.extend_from_slice(text.as_bytes());
        waiting.push(Waiting { sample, text: lines, has_branches: is_of_counter, branches: String::new() });
        Ok(())
    })?;
    waiting.drain(..).try_for_each(|one| one.write(out))?;
    out.flush()?;
    Ok(gate.stats())
}

/// Returns a branch in perf's form.
fn branch_text(branch: &BranchRecord) -> String {
    let prediction = match branch.prediction {
        Prediction::Predicted => 'P',
        Prediction::Mispredicted => 'M',
        Prediction::NotReported => '-',
    };
    format!(" {:#x}/{:#x}/{prediction}/-/-/{}", branch.from, branch.to, branch.cycles)
}

/// Writes the first line of a sample. Unknown processes and threads have the number 4294967295, which Windows never
/// gives: the programs that read this expect a number without a sign.
fn heading(sample: &AnySample, key: ProcessKey, contents: &Contents, out: &mut dyn Write) -> io::Result<()> {
    let AnySample { process, thread, processor, events, .. } = *sample;
    let time = contents.nanoseconds(sample.time);
    writeln!(
        out,
        "{} {process}/{thread} [{processor:03}] {:5}.{:09}: {events:10} {}:",
        command(contents.processes.name_or_unknown(key)),
        time / NANOSECONDS,
        time % NANOSECONDS,
        word(&contents.source_name(contents.sample_counts.source_of(sample))),
    )
}

/// Returns the lines of the functions of a call stack.
fn text(frames: &[Frame], contents: &Contents, symbol_index: &SymbolIndex) -> String {
    let mut text = String::new();
    for Frame { function, address, location } in frames {
        let name = symbol_index.function_name(*function, contents);
        let module = &escape::module(symbol_index.function_module(*function));
        // As perf has it: stackcollapse-perf.pl knows the kernel by the bracket.
        let is_plain = function.kernel && !module.starts_with('[');
        let module = if is_plain { Cow::Owned(format!("[{module}]")) } else { Cow::Borrowed(module.as_ref()) };
        let offset_in = |symbol: &Symbol| {
            let (_, offset) = contents.processes.module_at(location.process, location.kernel, location.ip)?;
            let behind = address.wrapping_sub(location.ip);
            Some(offset.saturating_sub(symbol.address.into()) + behind)
        };
        // Writing to a `String` cannot fail.
        let _ = match symbol_index.known_symbol(location) {
            _ if function.note().is_some() => writeln!(text, "\t{address:16x} {name} ({UNKNOWN_SYMBOL})"),
            _ if function.is_inlined() => writeln!(text, "\t{address:16x} {name} (inlined)"),
            Some(symbol) if let Some(offset) = offset_in(symbol) => {
                writeln!(text, "\t{address:16x} {}+{offset:#x} ({module})", symbol.text())
            }
            _ if module == JIT => writeln!(text, "\t{address:16x} {name} ({module})"),
            _ => writeln!(text, "\t{address:16x} {UNKNOWN_SYMBOL} ({module})"),
        };
    }
    text
}
