//! Exports single samples as CSV.

use std::io::{self, Read, Seek, Write};

use protocol::{AnySample, Mode, PauseKind, PreciseKind, Record, StopKind, UNKNOWN};

use crate::filter::Filter;
use crate::read::{Contents, ExportError};
use crate::symbol_index::SymbolIndex;
use crate::time_order::for_each_in_order;

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

/// Writes one line for each sample, loss, pause and sleep that `filter` selects. `input` is the recording
/// from which `contents` was read. The detail of a precise sample is its number, that of a branch its target.
///
/// # Errors
/// If the recording cannot be read again or the output cannot be written.
pub fn samples_csv(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: impl Read + Seek,
    out: impl Write,
) -> Result<(), ExportError> {
    let mut lines = Lines { out: csv::Writer::from_writer(out), contents, symbol_index };
    lines.out.write_record(FIELDS).map_err(io::Error::from)?;
    for_each_in_order(contents, symbol_index, filter, input, |record, _| lines.write(record))?;
    Ok(lines.out.flush()?)
}

struct Lines<'a, W: Write> {
    out: csv::Writer<W>,
    contents: &'a Contents,
    symbol_index: &'a SymbolIndex,
}

impl<W: Write> Lines<'_, W> {
    fn write(&mut self, record: &Record) -> io::Result<()> {
        let time = self.contents.nanoseconds(record.time()).to_string();
        let processor = record.processor().to_string();
        let sampled = self.contents.sample_counts.source_of_record(record);
        let source = match record.source() {
            protocol::ALL_SOURCES => "".into(),
            _ => self.contents.source_name(sampled),
        };
        let duration = |units| self.contents.duration(units).to_string();
        let (word, detail) = match record {
            Record::Sample(_) => ("sample", String::new()),
            Record::Precise(sample) => {
                let word = match sample.kind {
                    PreciseKind::Precise => "precise",
                    PreciseKind::PreciseNext => "precise_next",
                };
                (word, sample.number.to_string())
            }
            Record::Branch(branch) => ("branch", format!("{:#018x}", branch.to)),
            Record::Lost(lost) => ("lost", lost.count.to_string()),
            Record::Stop(stop) => match stop.kind {
                StopKind::Throttled => ("throttled", String::new()),
                StopKind::Silenced => ("silenced", String::new()),
                StopKind::Disconnected => ("disconnected", String::new()),
            },
            Record::Pause(pause) => match pause.kind {
                PauseKind::Resumed => ("resumed", duration(pause.duration)),
                PauseKind::Slept => ("slept", duration(pause.duration)),
                PauseKind::Reconnected => ("reconnected", duration(pause.duration)),
            },
        };
        if let Some(sample) = record.sample() {
            return self.write_sample(&sample, [&time, word, &processor, &source, &detail]);
        }
        let fields = [&time, word, &processor, &source, "", "", "", "", "", "", "", "", &detail];
        Ok(self.out.write_record(fields)?)
    }

    fn write_sample(
        &mut self,
        sample: &AnySample,
        [time, word, processor, source, detail]: [&str; 5],
    ) -> io::Result<()> {
        let location = self.contents.processes.location(sample);
        let mode = match sample.mode {
            Mode::User => "u",
            Mode::Kernel => "k",
        };
        let fields = [
            time,
            word,
            processor,
            source,
            &id_text(sample.process),
            self.contents.processes.name_or_unknown(location.process),
            &id_text(sample.thread),
            mode,
            &sample.events.to_string(),
            &format!("{:#018x}", sample.ip),
            self.symbol_index.module(&location),
            &self.symbol_index.symbol(&location),
            detail,
        ];
        Ok(self.out.write_record(fields)?)
    }
}

/// Returns a process or thread ID as text; empty if it is unknown.
fn id_text(id: u32) -> String {
    if id == UNKNOWN { String::new() } else { id.to_string() }
}
