//! The samples of a recording grouped by columns, as `report` and `export` show them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::{Duration, UNIX_EPOCH};

use halprof::core_types::{self, qualified};
use halprof::event;
use halprof::text::processors::named;
use pmu::Source;
use recording::{Count, Kept, MissingStack, RecordedEvent, RecordedSession, StackEnd};
use report::{
    CallOrder, Column, Contents, FirstRows, Limits, OmittedRows, RowTotal, SampledSource, Slice, StackStats,
    SymbolIndex, Table, TableRow,
};
use serde::Serialize;

use crate::reading::calls;
use crate::reading::load::LoadedRecording;
use crate::reading::losses::{
    LossShares, ProcessorLoss, counts_of, filtered, is_none, loss_shares, loss_stats, selected_losses,
};
use crate::reading::recorders::{RecorderFields, RecorderName, recorders};
use terminal::document::Document;
use terminal::format::{self, counted, properties, real, seconds};
use terminal::id::Id;

/// Nanoseconds in a second.
const NANOSECONDS: f64 = 1e9;

/// Last second of the year 9999, in milliseconds since 1970.
const LAST_SECOND: u64 = 253_402_300_799_000;

/// An aggregated recording.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Aggregate<'a> {
    /// Properties of the recording.
    pub recording: Header<'a>,
    /// Sources of the recording.
    pub sources: Vec<SourceAggregate>,
    /// Modules without symbols.
    pub without_symbols: Vec<WithoutSymbols<'a>>,
}

impl Document for Aggregate<'_> {
    const SCHEMA: &'static str = "halprof.report/1";
}

/// Properties of a recording.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Header<'a> {
    /// Start time in the format of RFC 3339.
    pub created: String,
    #[serde(flatten)]
    session: SessionFields<'a>,
    /// Duration; unknown if the recording is incomplete.
    pub elapsed_seconds: Option<f64>,
    /// What was kept of a recording with a limit, if anything was removed. All numbers refer to it but those of
    /// overflows that were dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptTime>,
    /// The processes and threads that were recorded; absent for all.
    #[serde(skip_serializing_if = "is_none")]
    pub tasks: TaskNumbers<'a>,
    /// The part of the recording that the options select by time, processors and threads; absent for all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<SelectedPart>,
    /// Number of times the machine slept.
    pub sleeps: u64,
    /// Total time for which it slept.
    pub asleep_seconds: f64,
    /// Whether Ctrl-C ended it.
    pub interrupted_by_user: Option<bool>,
    /// The exit code of the command.
    pub exit_code: Option<i32>,
    /// Why the recording is incomplete.
    pub damage: Option<String>,
}

/// The processes and threads that were recorded.
#[derive(Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TaskNumbers<'a> {
    /// IDs of processes.
    pub processes: &'a [u32],
    /// IDs of threads.
    pub threads: &'a [u32],
    /// Whether the processes that these started were recorded too.
    pub with_children: bool,
}

/// The end of a recording, which is all that is left of it.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptTime {
    /// Its duration.
    pub seconds: f64,
    /// Number of samples before it.
    pub removed: u64,
}

/// The part of a recording that the options select.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SelectedPart {
    /// Where it begins, in seconds after the start of the recording.
    pub from_seconds: f64,
    /// Where it ends.
    pub to_seconds: f64,
    /// Its processors; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processors: Option<Vec<u32>>,
    /// Its threads; absent for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Vec<u32>>,
}

impl SelectedPart {
    fn new(contents: &Contents, slice: &Slice) -> Self {
        let Range { start, end } = contents.selected_time(slice);
        let list = |numbers: &BTreeSet<u32>| numbers.iter().copied().collect();
        Self {
            from_seconds: real(start) / NANOSECONDS,
            to_seconds: real(end) / NANOSECONDS,
            processors: slice.processors.as_ref().map(list),
            threads: slice.threads.as_ref().map(list),
        }
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceAggregate {
    /// KPROFILE_SOURCE; `None` for an event that the HAL has no number for.
    pub id: Option<u32>,
    /// Name, on a hybrid with the core type of the processors.
    pub name: String,
    /// Core type of the processors, on a hybrid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_type: Option<String>,
    /// Events with which it was sampled.
    pub events: Vec<EventSettings>,
    /// Number of samples.
    pub samples: u64,
    /// Number of events that the samples represent.
    pub sampled_events: u64,
    /// Number of samples that the options select. The other numbers, and the shares, refer to all samples.
    pub selected_samples: u64,
    /// Number of events that the selected samples represent.
    pub selected_events: u64,
    /// Number of samples lost in the selected time on the selected processors, if not all are selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_lost: Option<u64>,
    /// Samples that are PEBS records of the instruction that caused the event.
    pub precise: u64,
    /// Samples that are PEBS records of the next instruction.
    pub precise_next: u64,
    /// Which counters made these records, and on how many processors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recorders: Vec<RecorderFields>,
    /// Number of samples without a latency, because it is unknown on how many processors the process ran; absent
    /// without latencies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_unknown: Option<u64>,
    /// Number of lost samples.
    pub lost: u64,
    /// Lost samples as a share of all samples of all processes, from 0 to 1.
    pub lost_share: f64,
    /// Overflows dropped because the interrupts had spent their budget.
    pub throttled: u64,
    /// Samples of other processes and threads, which were not recorded.
    #[serde(skip_serializing_if = "is_none")]
    pub filtered: u64,
    /// The condition of the samples, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<ConditionSummary>,
    /// Share of the time of all processors for which sampling paused; unknown if the recording is incomplete.
    pub paused_share: Option<f64>,
    /// Losses and pauses of the processors that had any.
    #[serde(rename = "disturbed")]
    pub loss_stats: Vec<ProcessorLoss>,
    /// Samples by their call stacks, if these were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stacks: Option<StackSummary>,
    /// The rows.
    pub rows: Vec<AggregateRow>,
    /// Rows omitted because of the limits.
    #[serde(skip)]
    pub rest: OmittedRows,
}

/// An event as requested.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EventSettings {
    /// Letters of the modes, with `p` if the processor itself recorded the event.
    pub modes: &'static str,
    /// Initial number of events between two samples.
    pub interval: u32,
    /// Target of samples per second and processor, to which the interval was adjusted; zero if the interval was fixed.
    pub frequency: u32,
    /// The event as the user named it.
    #[serde(skip)]
    pub label: String,
}

/// The condition of samples, and how many windows were decided on. A window is the time of a processor between two
/// overflows. Neither losses nor parts that the options do not select are left out.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ConditionSummary {
    /// The condition as the user wrote it.
    pub text: String,
    /// Number of windows that met it; unknown if the recording is incomplete.
    pub met: Option<u64>,
    /// Number of those that did not meet it; unknown as well if counters decided.
    pub unmet: Option<u64>,
}

impl ConditionSummary {
    fn new(contents: &Contents, sampled: SampledSource) -> Option<Self> {
        let text = contents.session.condition.clone()?;
        let sum = |number: fn(&Count) -> u64| {
            let summary = contents.summary.as_ref()?;
            Some(counts_of(contents, summary, sampled).map(number).fold(0, u64::saturating_add))
        };
        let by_counters = recorders(contents, sampled).iter().any(|one| one.counter == RecorderName::Reloaded);
        let unmet = sum(|count| count.unmet).filter(|_| !by_counters);
        Some(Self { text, met: sum(|count| count.samples), unmet })
    }
}

/// Samples by what is known about their call stacks. The others have complete stacks.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StackSummary {
    /// Number of samples with a complete stack.
    pub complete: u64,
    /// Number of samples of which outer callers are missing, because the stack is too long.
    pub truncated: u64,
    /// Number of samples in kernel mode of which the callers in user mode did not arrive.
    pub kernel_only: u64,
    /// Number of samples without a stack, by reason.
    pub missing: BTreeMap<&'static str, u64>,
}

impl StackSummary {
    fn new(stats: &StackStats) -> Option<Self> {
        let reasons = MissingStack::ALL.map(|reason| (reason.name(), stats.without(reason)));
        let missing = reasons.into_iter().chain([(NOT_RECORDED, stats.not_recorded())]);
        stats.are_recorded().then(|| Self {
            complete: stats.complete(),
            truncated: stats.ended(StackEnd::Truncated),
            kernel_only: stats.ended(StackEnd::UserLost),
            missing: missing.filter(|(_, samples)| *samples > 0).collect(),
        })
    }
}

/// Name of the reason of samples in parts of a recording without call stacks.
const NOT_RECORDED: &str = "not recorded";

/// What is shown of calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Calls {
    /// Whether rows have the samples of the functions that they call.
    pub has_children: bool,
    /// The direction in which calls are drawn below each row.
    pub order: Option<CallOrder>,
    /// The width to which names are shortened.
    pub width: usize,
}

/// The samples of a row and of the functions that it calls.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TotalFields {
    /// Share of the events of the source, from 0 to 1.
    pub share: f64,
    /// Lower bound of the 95 % confidence interval of the share.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Number of samples.
    pub samples: u64,
    /// Number of events that the samples represent.
    pub events: u64,
}

/// A row. Fields without a column are omitted.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AggregateRow {
    /// Share of the events of the source, from 0 to 1.
    pub share: f64,
    /// Lower bound of the 95 % confidence interval of the share.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Number of samples.
    pub samples: u64,
    /// Number of events that the samples represent.
    pub events: u64,
    /// Share of the wall time in which processes ran, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<f64>,
    /// With the functions that are called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<TotalFields>,
    /// Its calls as lines of text.
    #[serde(skip)]
    pub calls: Vec<String>,
    /// Process ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Id>,
    /// Name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_name: Option<String>,
    /// Thread ID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Id>,
    /// Processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processor: Option<u32>,
    /// Number of processors that ran the process; 0 if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallelism: Option<u32>,
    /// Module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Symbol, or a placeholder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Address, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

/// A module without symbols.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WithoutSymbols<'a> {
    module: &'a str,
    path: &'a str,
    reason: String,
}

impl<'a> Aggregate<'a> {
    /// Groups the samples of a recording by `columns`.
    pub fn new(loaded: &'a LoadedRecording, columns: &[Column], limits: Limits) -> Self {
        Self::with_calls(loaded, columns, limits, Calls::default())
    }

    /// Groups the samples of a recording by `columns`, with what the rows call.
    pub fn with_calls(loaded: &'a LoadedRecording, columns: &[Column], limits: Limits, calls: Calls) -> Self {
        Self {
            recording: Header::new(loaded),
            sources: loaded.sources().into_iter().map(|id| source(loaded, id, columns, (limits, calls))).collect(),
            without_symbols: without_symbols(&loaded.symbol_index),
        }
    }
}

/// Returns the modules without symbols, and why.
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
    /// Returns the properties of a recording.
    pub fn new(loaded: &'a LoadedRecording) -> Self {
        let contents = &loaded.contents;
        let RecordedSession { computer, processor, processors, command, batch, client, driver, tasks, .. } =
            &contents.session;
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
            kept: summary.and_then(|summary| {
                summary.kept.map(|Kept { elapsed, removed }| KeptTime { seconds: seconds(elapsed), removed })
            }),
            tasks: TaskNumbers {
                processes: &tasks.processes,
                threads: &tasks.threads,
                with_children: tasks.with_children,
            },
            selected: (!loaded.filter.slice.is_whole()).then(|| SelectedPart::new(contents, &loaded.filter.slice)),
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
        rows.extend(session.tasks.text().map(|text| ("Only", text)));
        if let Some(KeptTime { seconds, removed }) = &self.kept {
            let removed = counted(*removed, "sample");
            rows.push(("Kept", format!("the last {seconds:.3} s; {removed} before them were removed")));
        }
        rows.extend(loaded.contents.slice_text(&loaded.filter.slice).map(|text| ("Part", text)));
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

/// Formats milliseconds since 1970 as a date. Its year has four digits.
fn created(unix_ms: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_millis(unix_ms.min(LAST_SECOND));
    humantime::format_rfc3339_seconds(time).to_string()
}

fn source(
    loaded: &LoadedRecording,
    sampled: SampledSource,
    columns: &[Column],
    (limits, calls): (Limits, Calls),
) -> SourceAggregate {
    let LoadedRecording { contents, filter, symbol_index, .. } = loaded;
    let (event, core_type) = (contents.event(sampled), sampled.core_type);
    let group = if calls.has_children { Table::with_children } else { Table::new };
    let table = group(contents, symbol_index, sampled, columns, filter);
    let loss_stats = loss_stats(loaded, sampled);
    let LossShares { lost, lost_share, paused_share } = loss_shares(loaded, sampled, &loss_stats);
    let is_part = !filter.slice.is_whole();
    let selected_lost = is_part.then(|| selected_losses(loaded, sampled).iter().map(|one| one.lost).sum());
    let (FirstRows { rows, omitted }, trees) = match calls.order {
        Some(order) => table.first_with_calls(limits, order, filter),
        None => (table.first(limits), Vec::new()),
    };
    let mut rows: Vec<AggregateRow> = rows.into_iter().map(AggregateRow::from).collect();
    for (row, tree) in rows.iter_mut().zip(&trees) {
        row.calls = calls::lines(tree, contents, symbol_index, table.total.weight.events, calls.width);
    }
    SourceAggregate {
        id: event.and_then(|event| Source(event.source).number()),
        name: contents.source_name(sampled).into_owned(),
        core_type: (core_type != 0).then(|| core_types::name(core_type)),
        events: event.map(|event| settings(event, core_type)).into_iter().collect(),
        samples: table.total.weight.samples,
        sampled_events: table.total.weight.events,
        selected_samples: table.selected.samples,
        selected_events: table.selected.events,
        selected_lost,
        precise: table.total.precise,
        precise_next: table.total.precise_next,
        recorders: recorders(contents, sampled),
        latency_unknown: table.has_latency().then_some(table.total.unknown),
        lost,
        lost_share,
        paused_share,
        throttled: loss_stats.iter().map(|one| one.throttled).sum(),
        filtered: filtered(contents, sampled),
        condition: ConditionSummary::new(contents, sampled),
        loss_stats,
        stacks: StackSummary::new(&contents.sample_counts.stack_stats(sampled)),
        rows,
        rest: omitted,
    }
}

fn settings(event: &RecordedEvent, core_type: u32) -> EventSettings {
    let RecordedEvent { name, modes, interval, frequency, .. } = event;
    let label = format!("{}{}", qualified(name, core_type), event::suffix(*modes));
    EventSettings { modes: event::mode_letters(*modes), interval: *interval, frequency: *frequency, label }
}

impl From<TableRow> for AggregateRow {
    fn from(row: TableRow) -> Self {
        Self {
            share: row.share,
            low: row.interval.low,
            high: row.interval.high,
            samples: row.weight.samples,
            events: row.weight.events,
            total: row.total.map(|RowTotal { weight, share, interval }| TotalFields {
                share,
                low: interval.low,
                high: interval.high,
                samples: weight.samples,
                events: weight.events,
            }),
            calls: Vec::new(),
            latency: row.latency,
            parallelism: row.parallelism,
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
