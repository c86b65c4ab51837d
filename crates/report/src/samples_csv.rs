//! Exports single samples as CSV.

use std::io::{self, Read, Write};

use protocol::{Sample, SampleKind, UNKNOWN, modes};

use crate::filter::Filter;
use crate::read::{Contents, ExportError, for_each_record};
use crate::sample_counts::{Detail, SampleLocation, events};
use crate::symbol_index::SymbolIndex;

/// Names of the fields; the first line of the output.
const FIELDS: [&str; 13] = [
    "time_ns",
    "kind",
    "processor",
    "source",
    "process",
    "process_name",
    "thread",
    "mode",
    "events",
    "address",
    "module",
    "symbol",
    "detail",
];

/// Writes one line for each sample that `filter` selects and for each loss, pause and sleep. `input` is the recording
/// from which `contents` was read. The detail of a precise sample is its number, that of a branch its target.
///
/// # Errors
/// If the recording cannot be read again or the output cannot be written.
pub fn samples_csv(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: impl Read,
    out: impl Write,
) -> Result<(), ExportError> {
    let mut lines = Lines { out: csv::Writer::from_writer(out), contents, symbol_index, filter };
    lines.out.write_record(FIELDS).map_err(io::Error::from)?;
    for_each_record(input, |record| lines.write(record))?;
    Ok(lines.out.flush()?)
}

struct Lines<'a, W: Write> {
    out: csv::Writer<W>,
    contents: &'a Contents,
    symbol_index: &'a SymbolIndex,
    filter: &'a Filter,
}

impl<W: Write> Lines<'_, W> {
    fn write(&mut self, record: &Sample) -> io::Result<()> {
        let Some(kind) = SampleKind::from_number(record.kind) else { return Ok(()) };
        let time = self.contents.nanoseconds(record.time).to_string();
        let processor = record.processor.to_string();
        let source = match record.source {
            protocol::ALL_SOURCES => "".into(),
            source => self.contents.source_name(source),
        };
        let (word, detail) = match kind {
            SampleKind::Sample | SampleKind::Precise | SampleKind::PreciseNext | SampleKind::Branch => {
                if self.filter.selects(record.source, record.process) {
                    self.write_sample(record, kind, [&time, &processor, &source])?;
                }
                return Ok(());
            }
            SampleKind::Lost => ("lost", record.ip.to_string()),
            SampleKind::Throttled => ("throttled", String::new()),
            SampleKind::Resumed => ("resumed", self.contents.duration(record.ip).to_string()),
            SampleKind::Slept => ("slept", self.contents.duration(record.ip).to_string()),
            SampleKind::Silenced => ("silenced", String::new()),
        };
        if self.filter.selects_source(record.source) {
            let fields = [&time, word, &processor, &source, "", "", "", "", "", "", "", "", &detail];
            self.out.write_record(fields)?;
        }
        Ok(())
    }

    fn write_sample(
        &mut self,
        sample: &Sample,
        kind: SampleKind,
        [time, processor, source]: [&str; 3],
    ) -> io::Result<()> {
        let location = SampleLocation::of(sample, Detail::default());
        let (word, detail) = match kind {
            SampleKind::Precise => ("precise", sample.pebs_sequence.to_string()),
            SampleKind::PreciseNext => ("precise_next", sample.pebs_sequence.to_string()),
            SampleKind::Branch => ("branch", format!("{:#018x}", sample.pebs_sequence)),
            _ => ("sample", String::new()),
        };
        let mode = if u32::from(sample.modes) == modes::KERNEL { "k" } else { "u" };
        let fields = [
            time,
            word,
            processor,
            source,
            &id_text(sample.process),
            self.contents.processes.name_or_unknown(sample.process),
            &id_text(sample.thread),
            mode,
            &events(sample, kind).to_string(),
            &format!("{:#018x}", sample.ip),
            self.symbol_index.module(&location),
            &self.symbol_index.symbol(&location),
            &detail,
        ];
        Ok(self.out.write_record(fields)?)
    }
}

/// Returns a process or thread ID as text; empty if it is unknown.
fn id_text(id: u32) -> String {
    if id == UNKNOWN { String::new() } else { id.to_string() }
}
