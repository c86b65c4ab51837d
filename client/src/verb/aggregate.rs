//! The sums over a recording, as `report` and `export` show them.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use protocol::ALL_SOURCES;
use recording::{RecordedEvent, Session, Summary};
use report::{Column, SymbolIndex, Table, TableRow};
use serde::Serialize;

use super::load::LoadedRecording;
use crate::event;
use crate::format::{self, counted, properties, real, seconds};
use crate::id::Id;
use crate::processors::named;
use crate::share;

/// Nanoseconds in a second.
const NANOSECONDS: f64 = 1e9;

/// The end of the year 9999, in milliseconds since 1970.
const LAST_SECOND: u64 = 253_402_300_799_000;

/// What is shown of the rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// At most so many.
    pub rows: Option<usize>,
    /// Those with this share of the events or more, from 0 to 1.
    pub share: f64,
}

/// All of it.
#[derive(Debug, Serialize)]
pub struct Aggregate<'a> {
    /// The recording.
    pub recording: Header<'a>,
    /// Its sources.
    pub sources: Vec<SourceAggregate>,
    /// The modules whose symbols were not found.
    pub without_symbols: Vec<WithoutSymbols<'a>>,
}

/// What was recorded.
#[derive(Debug, Serialize)]
pub struct Header<'a> {
    /// When it began, as RFC 3339 has it.
    pub created: String,
    #[serde(flatten)]
    session: SessionFields<'a>,
    /// How long it took; unknown where the recording is not whole.
    pub elapsed_seconds: Option<f64>,
    /// How often the machine slept meanwhile.
    pub sleeps: u64,
    /// For how long in all.
    pub asleep_seconds: f64,
    /// Whether Ctrl-C ended it.
    pub interrupted_by_user: Option<bool>,
    /// The exit code of the command.
    pub exit_code: Option<i32>,
    /// What is wrong with it.
    pub damage: Option<String>,
}

#[derive(Debug, Serialize)]
struct SessionFields<'a> {
    computer: Option<&'a str>,
    processor: &'a str,
    processors: &'a [u32],
    command: &'a [String],
    batch: u32,
    client: &'a str,
    driver: &'a str,
}

/// A source of a recording.
#[derive(Debug, Serialize)]
pub struct SourceAggregate {
    /// KPROFILE_SOURCE.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// As which events it was sampled.
    pub events: Vec<EventSettings>,
    /// All its samples.
    pub samples: u64,
    /// The events that they stand for.
    pub sampled_events: u64,
    /// Of the samples: records of the instruction that made the event happen.
    pub precise: u64,
    /// Of the samples: records of the instruction behind that.
    pub precise_next: u64,
    /// Samples that were lost.
    pub lost: u64,
    /// Of the samples of all processes, from 0 to 1.
    pub lost_share: f64,
    /// Overflows that were dropped because interrupts had spent their budget.
    pub throttled: u64,
    /// The share of the time of all processors for which sampling paused; unknown where the recording is not whole.
    pub paused_share: Option<f64>,
    /// The processors on which any of that happened.
    #[serde(rename = "disturbed")]
    pub loss_stats: Vec<ProcessorLoss>,
    /// The rows.
    pub rows: Vec<AggregateRow>,
    /// The rows that a limit keeps back.
    #[serde(skip)]
    pub rest: OmittedRows,
}

/// An event as it was asked for.
#[derive(Debug, Serialize)]
pub struct EventSettings {
    /// In which modes, with `p` where the processor itself recorded it.
    pub modes: &'static str,
    /// Events between two samples, at the beginning.
    pub interval: u32,
    /// Samples a second and processor towards which the interval was moved; zero: it stayed.
    pub frequency: u32,
    /// As the user asked for it.
    #[serde(skip)]
    pub label: String,
}

/// What befell the sampling on a processor.
#[derive(Debug, Default, Serialize)]
pub struct ProcessorLoss {
    /// Which.
    pub processor: u32,
    /// Samples that were lost.
    pub lost: u64,
    /// Overflows that were dropped.
    pub throttled: u64,
    /// How often sampling paused.
    pub pauses: u64,
    /// How long in all.
    pub paused_seconds: f64,
}

/// Rows that are not shown.
#[derive(Debug, Default)]
pub struct OmittedRows {
    /// How many.
    pub rows: usize,
    /// Their share of the events.
    pub share: f64,
    /// Whether as many rows are shown as the limit allows.
    pub by_number: bool,
    /// Whether the first of these has too small a share.
    pub by_share: bool,
}

/// A row; what the table has no column for is left out.
#[derive(Debug, Serialize)]
pub struct AggregateRow {
    /// Share of the events of the source, from 0 to 1.
    pub share: f64,
    /// Lower end of its 95 % confidence interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Samples.
    pub samples: u64,
    /// The events that they stand for.
    pub events: u64,
    /// Number of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Id>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_name: Option<String>,
    /// Thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Id>,
    /// Processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<u32>,
    /// Module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Symbol, or what stands for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Address, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A module without symbols.
#[derive(Debug, Serialize)]
pub struct WithoutSymbols<'a> {
    module: &'a str,
    path: &'a str,
    reason: String,
}

impl<'a> Aggregate<'a> {
    /// The sums of `loaded` by `columns`.
    pub fn new(loaded: &'a LoadedRecording, columns: &[Column], limits: Limits) -> Self {
        Self {
            recording: Header::new(loaded),
            sources: loaded.sources().into_iter().map(|id| source(loaded, id, columns, limits)).collect(),
            without_symbols: without_symbols(&loaded.symbol_index),
        }
    }
}

/// The modules whose symbols were not found.
pub fn without_symbols(symbol_index: &SymbolIndex) -> Vec<WithoutSymbols<'_>> {
    let modules = symbol_index.modules();
    let told = symbol_index.missing().iter().map(|missing| WithoutSymbols {
        module: modules.name(missing.module),
        path: modules.get(missing.module).map_or("", |module| &module.path),
        reason: missing.reason.to_string(),
    });
    told.collect()
}

impl<'a> Header<'a> {
    /// Of `loaded`.
    pub fn new(loaded: &'a LoadedRecording) -> Self {
        let contents = &loaded.contents;
        let Session { computer, processor, processors, command, batch, client, driver, .. } = &contents.session;
        let summary = contents.summary.as_ref();
        let (sleeps, slept) = contents.sample_counts.slept();
        Self {
            created: created(contents.session.created_unix_ms),
            session: SessionFields {
                computer: computer.as_deref(),
                processor,
                processors,
                command,
                batch: *batch,
                client,
                driver,
            },
            elapsed_seconds: summary.map(|summary| seconds(summary.elapsed)),
            sleeps,
            asleep_seconds: real(contents.duration(slept)) / NANOSECONDS,
            interrupted_by_user: summary.map(|summary| summary.interrupted_by_user),
            exit_code: summary.and_then(|summary| summary.exit_code),
            damage: contents.damage.as_ref().map(ToString::to_string),
        }
    }

    /// Returns the properties of the recording as text.
    pub fn text(&self, loaded: &LoadedRecording) -> String {
        let session = &loaded.contents.session;
        let date = self.created.replace('T', " ").replace('Z', " UTC");
        let on = session.computer.as_ref().map_or_else(String::new, |computer| format!(" on {computer}"));
        let time = self.elapsed_seconds.map_or_else(String::new, |seconds| format!(", for {seconds:.3} s"));
        let command = if session.command.is_empty() { "none".to_owned() } else { session.command.join(" ") };
        let mut rows = vec![
            ("Recorded", format!("{date}{on}{time}")),
            ("Command", command),
            ("Machine", format!("{}, {}", session.processor, named(session.processors.iter().copied()))),
        ];
        if session.batch > 1 {
            rows.push((
                "Batches",
                format!("{} precise records at a time, which do not say their process", session.batch),
            ));
        }
        if self.sleeps > 0 {
            let times = counted(self.sleeps, "time");
            rows.push(("Slept", format!("{times}, {:.3} s in all, in which nothing was sampled", self.asleep_seconds)));
        }
        properties(&rows)
    }
}

/// Milliseconds since 1970 as a date; it has four digits for the year.
fn created(unix_ms: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(unix_ms.min(LAST_SECOND));
    humantime::format_rfc3339_seconds(time).to_string()
}

fn source(loaded: &LoadedRecording, id: u32, columns: &[Column], limits: Limits) -> SourceAggregate {
    let LoadedRecording { contents, filter, symbol_index, .. } = loaded;
    let table = Table::new(contents, symbol_index, id, columns, filter);
    let loss_stats = loss_stats(loaded, id);
    let lost = loss_stats.iter().map(|one| one.lost).sum();
    let paused_seconds = loss_stats.iter().map(|one| one.paused_seconds).sum();
    let processors = contents.session.processors.len();
    let paused_share = |summary: &Summary| share::paused(paused_seconds, seconds(summary.elapsed), processors);
    let (rows, rest) = limited(table.rows, limits);
    SourceAggregate {
        id,
        name: contents.source_name(id).into_owned(),
        events: contents.session.events.iter().filter(|event| event.source == id).map(settings).collect(),
        samples: table.total.weight.samples,
        sampled_events: table.total.weight.events,
        precise: table.total.precise,
        precise_next: table.total.precise_next,
        lost,
        lost_share: share::lost(lost, contents.sample_counts.total(id).weight.samples),
        paused_share: contents.summary.as_ref().map(paused_share),
        throttled: loss_stats.iter().map(|one| one.throttled).sum(),
        loss_stats,
        rows,
        rest,
    }
}

fn settings(event: &RecordedEvent) -> EventSettings {
    let RecordedEvent { name, modes, interval, frequency, .. } = event;
    let label = format!("{name}{}", event::suffix(*modes));
    EventSettings { modes: event::letters(*modes), interval: *interval, frequency: *frequency, label }
}

/// The final counts tell what was lost, to the end; the samples alone where there are none.
fn loss_stats(loaded: &LoadedRecording, id: u32) -> Vec<ProcessorLoss> {
    let mut found: BTreeMap<u32, ProcessorLoss> = BTreeMap::new();
    let contents = &loaded.contents;
    for count in contents.summary.iter().flat_map(|summary| &summary.counts).filter(|count| count.source == id) {
        let one = found.entry(count.processor).or_default();
        one.lost += count.lost;
        one.throttled += count.throttled;
    }
    for (source, processor, stats) in contents.sample_counts.loss_stats() {
        if source != id && source != ALL_SOURCES {
            continue;
        }
        let one = found.entry(processor).or_default();
        if contents.summary.is_none() {
            one.lost += stats.lost;
        }
        one.pauses += stats.pauses;
        one.paused_seconds += real(contents.duration(stats.paused)) / NANOSECONDS;
    }
    let told = found.into_iter().map(|(processor, one)| ProcessorLoss { processor, ..one });
    told.filter(|one| (one.lost, one.throttled, one.pauses) != (0, 0, 0)).collect()
}

fn limited(rows: Vec<TableRow>, limits: Limits) -> (Vec<AggregateRow>, OmittedRows) {
    let most = limits.rows.unwrap_or(usize::MAX);
    let shown = rows.iter().take(most).take_while(|row| row.share >= limits.share).count();
    let rest = rows.iter().skip(shown);
    let rest = OmittedRows {
        rows: rest.len(),
        by_number: shown == most,
        by_share: rest.clone().next().is_some_and(|row| row.share < limits.share),
        share: rest.map(|row| row.share).sum(),
    };
    (rows.into_iter().take(shown).map(AggregateRow::from).collect(), rest)
}

impl From<TableRow> for AggregateRow {
    fn from(row: TableRow) -> Self {
        Self {
            share: row.share,
            low: row.interval.low,
            high: row.interval.high,
            samples: row.weight.samples,
            events: row.weight.events,
            process: row.process.map(Id::from),
            process_name: row.process_name,
            thread: row.thread.map(Id::from),
            processor: row.processor,
            module: row.module,
            symbol: row.symbol,
            address: row.address.map(format::address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_milliseconds_has_a_date() {
        assert_eq!(created(0), "1970-01-01T00:00:00Z");
        assert_eq!(created(1_767_225_600_999), "2026-01-01T00:00:00Z");
        assert_eq!(created(u64::MAX), "9999-12-31T23:59:59Z");
    }
}
