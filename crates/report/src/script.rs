//! Single samples as text in the format of `perf script`, which FlameGraph's `stackcollapse-perf.pl`, inferno,
//! speedscope and Perfetto read:
//!
//! ```text
//! app.exe 1788/1792 [001]     0.004000100:     100003 TotalCycles:
//!         7ff8310005c0 alpha+0x40 (workload.exe)
//! ```

use std::fmt::Write as _;
use std::io::{self, Read, Seek, Write};

use protocol::AnySample;
use rustc_hash::FxHashMap;

use crate::filter::Filter;
use crate::locations::SampleLocation;
use crate::process_keys::ProcessKey;
use crate::read::{Contents, ExportError, for_each_selected};
use crate::symbol_index::{JIT, SymbolIndex};

/// What perf prints for a function that it does not know.
const UNKNOWN_SYMBOL: &str = "[unknown]";

/// Nanoseconds per second.
const NANOSECONDS: u64 = 1_000_000_000;

/// Writes the samples that `filter` selects. `input` is the recording from which `contents` was read. The period of a
/// sample is the number of its events. A function that is inlined has a line of its own, the innermost one first.
///
/// # Errors
/// If the recording cannot be read again or the output cannot be written.
pub fn script(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: impl Read + Seek,
    mut out: impl Write,
) -> Result<(), ExportError> {
    let mut stacks = FxHashMap::default();
    for_each_selected(contents, symbol_index, filter, input, |record| {
        let Some(sample) = record.sample() else { return Ok(()) };
        let location = contents.processes.location(&sample);
        let stack = stacks.entry(location).or_insert_with(|| stack(&location, contents, symbol_index));
        heading(&sample, location.process, contents, &mut out)?;
        writeln!(out, "{stack}")
    })?;
    Ok(out.flush()?)
}

/// Writes the first line of a sample. Unknown processes and threads have the number 4294967295, which Windows never
/// gives: the programs that read this expect a number without a sign.
fn heading(sample: &AnySample, key: ProcessKey, contents: &Contents, out: &mut impl Write) -> io::Result<()> {
    let AnySample { process, thread, processor, events, .. } = *sample;
    let time = contents.nanoseconds(sample.time);
    writeln!(
        out,
        "{} {process}/{thread} [{processor:03}] {:5}.{:09}: {events:10} {}:",
        contents.processes.name_or_unknown(key),
        time / NANOSECONDS,
        time % NANOSECONDS,
        contents.source_name(contents.sample_counts.source_of(sample)),
    )
}

/// Returns the lines of the functions at a location.
fn stack(location: &SampleLocation, contents: &Contents, symbol_index: &SymbolIndex) -> String {
    let mut text = String::new();
    let inlined: Vec<&str> = symbol_index.inlined(location).collect();
    for name in inlined.iter().rev() {
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "\t{:16x} {name} (inlined)", location.ip);
    }
    let module = symbol_index.module(location);
    let found = contents.processes.module_at(location.process, location.kernel, location.ip);
    let _ = match (symbol_index.known_symbol(location), found) {
        (Some(symbol), Some((_, offset))) => {
            let offset = offset.saturating_sub(symbol.address.into());
            writeln!(text, "\t{:16x} {}+{offset:#x} ({module})", location.ip, symbol.name)
        }
        _ if module == JIT => writeln!(text, "\t{:16x} {} ({module})", location.ip, symbol_index.symbol(location)),
        _ => writeln!(text, "\t{:16x} {UNKNOWN_SYMBOL} ({module})", location.ip),
    };
    text
}
