//! `mem report`: shows what served the accesses of a recording, and how long loads waited.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use halprof::core_types;
use protocol::AccessEncoding;
use report::{Access, AccessNames, AccessRow, AccessStats, AccessTable, Accesses, NamedBy, SampledSource};
use serde::Serialize;

use crate::cli::{AccessField, MemReportArgs};
use crate::reading::aggregate::{Header, WithoutSymbols, without_symbols};
use crate::reading::load::LoadedRecording;
use crate::reading::losses::finish_export;
use crate::verb::branch_end::real_field;
use counts::share::{self, percent};
use terminal::color;
use terminal::columns::fitted;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::{counted, grouped, properties};
use user_error::Error;

/// Names of the first fields; the first line of `--csv`, before those of the columns.
const FIELDS: [&str; 11] = [
    "event",
    "samples",
    "share",
    "share_error",
    "latency_share",
    "latency_error",
    "mean_latency",
    "p90_latency",
    "locked_share",
    "walked_share",
    "data_process",
];

/// Headings of the columns of numbers, and of those beside short names only.
const NUMBERS: [&str; 7] = ["Share", "+/-", "Latency", "+/-", "Samples", "Mean", "90%"];
const MORE_NUMBERS: [&str; 2] = ["Lock", "Walk"];

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryReport<'a> {
    recording: Header<'a>,
    events: Vec<MemoryEvent>,
    without_symbols: Vec<WithoutSymbols<'a>>,
}

impl Document for MemoryReport<'_> {
    const SCHEMA: &'static str = "halprof.memory/1";
}

/// The accesses of an event.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryEvent {
    /// Name, on a hybrid with the core type of the processors.
    name: String,
    /// Core type of the processors, on a hybrid.
    #[serde(skip_serializing_if = "Option::is_none")]
    core_type: Option<String>,
    /// Number of samples that the options select by process, thread, processor and time.
    samples: u64,
    /// Number of those with an access.
    accesses: u64,
    /// Number of those whose instruction accessed no memory.
    without_memory: u64,
    /// Number of accesses that the options select. The shares are of these.
    selected: u64,
    /// Number of those of which the record does not say, or not by a known code, what served them.
    unknown: u64,
    /// Number of those without an address.
    without_address: u64,
    /// What names their data, if the columns have its names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub named: Option<NamedAccesses>,
    /// All selected accesses.
    pub total: MemoryRow,
    /// Number of rows, also of those that are not shown.
    #[serde(rename = "different")]
    pub distinct: usize,
    pub rows: Vec<MemoryRow>,
    #[serde(skip)]
    bias: Vec<&'static str>,
}

/// Numbers of selected accesses by what names their data.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NamedAccesses {
    /// A variable of a module has the address.
    pub by_address: u64,
    /// A variable of the function has the memory, or points to it.
    pub by_instruction: u64,
    /// Nothing. The operand of the instruction is known.
    only_operand: u64,
    /// Nothing.
    unknown: u64,
}

impl NamedAccesses {
    fn new<'a>(accesses: impl Iterator<Item = &'a Access>, names: &AccessNames) -> Self {
        let mut numbers = Self::default();
        for access in accesses {
            let number = match names.named_by(access) {
                NamedBy::Address => &mut numbers.by_address,
                NamedBy::Instruction => &mut numbers.by_instruction,
                NamedBy::Operand => &mut numbers.only_operand,
                NamedBy::Nothing => &mut numbers.unknown,
            };
            *number += 1;
        }
        numbers
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemoryRow {
    samples: u64,
    /// Share of the events that the samples represent, from 0 to 1.
    pub share: f64,
    /// Its standard error.
    share_error: f64,
    /// Share of the cycles for which all loads waited, from 0 to 1; `None` if no record has a latency.
    pub latency_share: Option<f64>,
    /// Its standard error.
    latency_error: Option<f64>,
    /// Mean of the latencies in core clock cycles.
    mean_latency: Option<f64>,
    /// Their 90th percentile.
    p90_latency: Option<u32>,
    /// Share of the samples with a locked access, from 0 to 1.
    locked_share: f64,
    /// Share of page walks among the samples that say how the address was translated; `None` if none does.
    walked_share: Option<f64>,
    /// The process to which an address of user mode in the columns belongs.
    #[serde(skip_serializing_if = "Option::is_none")]
    data_process: Option<String>,
    /// The columns by their names.
    columns: BTreeMap<String, String>,
}

impl MemoryRow {
    fn new(row: &AccessRow, fields: &[AccessField]) -> Self {
        let names = fields.iter().map(|field| field.name());
        Self {
            samples: row.samples,
            share: row.share,
            share_error: row.error,
            latency_share: row.latency_share,
            latency_error: row.latency_error,
            mean_latency: row.mean,
            p90_latency: row.percentile,
            locked_share: row.locked,
            walked_share: row.walked,
            data_process: row.owner.clone(),
            columns: names.zip(row.cells.iter().cloned()).collect(),
        }
    }
}

impl MemoryEvent {
    /// Groups the accesses of a source by `fields`, into at most `limit` rows. Their data have the names of `names`.
    pub fn new(
        loaded: &LoadedRecording,
        accesses: &Accesses,
        source: SampledSource,
        (fields, limit): (&[AccessField], Option<usize>),
        names: Option<&AccessNames>,
    ) -> Self {
        let LoadedRecording { contents, symbol_index, .. } = loaded;
        let columns: Vec<_> = fields.iter().map(|field| field.column()).collect();
        let of = || accesses.of(source);
        let number = |is: fn(&Access) -> bool| of().filter(|access| is(access)).count() as u64;
        let unnamed = AccessNames::default();
        let table = AccessTable::new(of(), &columns, contents, symbol_index, names.unwrap_or(&unnamed));
        let total = MemoryRow::new(&table.total(), &[]);
        let (rows, distinct) = table.first(limit);
        let AccessStats { samples, accesses, without_memory } = accesses.stats(source);
        let mut bias: Vec<&'static str> = of().filter_map(|access| bias(access.encoding)).collect();
        bias.sort_unstable();
        bias.dedup();
        Self {
            name: contents.source_name(source).into_owned(),
            core_type: (source.core_type != 0).then(|| core_types::name(source.core_type)),
            samples,
            accesses,
            without_memory,
            selected: total.samples,
            unknown: number(|access| access.data.level.is_unknown()),
            without_address: number(|access| access.address.number().is_none()),
            named: names.map(|names| NamedAccesses::new(of(), names)),
            total,
            distinct,
            rows: rows.iter().map(|row| MemoryRow::new(row, fields)).collect(),
            bias,
        }
    }
}

pub fn run(args: &MemReportArgs, context: &mut Context) -> Result<i32, Error> {
    let (loaded, accesses) = LoadedRecording::with_accesses(&args.recording)?;
    let sources = accesses.sources();
    let names = if args.fields().iter().any(|field| field.is_type()) {
        Some(loaded.access_names(&accesses, &args.recording.selection)?)
    } else {
        None
    };
    let view = (args.fields(), args.max_rows());
    let event = |source: &SampledSource| MemoryEvent::new(&loaded, &accesses, *source, view, names.as_ref());
    let report = MemoryReport {
        recording: Header::new(&loaded),
        events: sources.iter().map(event).collect(),
        without_symbols: without_symbols(&loaded.symbol_index),
    };
    if args.format.json {
        context.json(&report)?;
    } else if args.format.csv {
        csv(&report.events, args.fields(), context)?;
    } else {
        context.say(&report.recording.text(&loaded))?;
        let width = context.width(args.wide);
        for event in &report.events {
            context.say_painted(&format!("\n{}", text(event, args.fields(), width)))?;
        }
    }
    finish_export(&loaded, context)
}

/// Returns what samples of loads in this encoding are a sample of, if it is not all loads alike.
const fn bias(encoding: AccessEncoding) -> Option<&'static str> {
    match encoding {
        AccessEncoding::Store => None,
        AccessEncoding::Ibs | AccessEncoding::IbsZen3 | AccessEncoding::IbsZen3Client | AccessEncoding::IbsZen4 => {
            Some("ops behind stalls are preferred, so samples do not count events")
        }
        AccessEncoding::IbsFetch
        | AccessEncoding::IbsFetchZen
        | AccessEncoding::IbsFetchZen3
        | AccessEncoding::IbsFetchZen4 => {
            Some("one fetch for each interval of instructions, so samples do not count fetches")
        }
        _ => Some("one load at a time is followed, so samples do not count loads"),
    }
}

/// Formats an event with the escape sequences of colors.
fn text(event: &MemoryEvent, fields: &[AccessField], width: usize) -> String {
    let mut parts = vec![account(event)];
    parts.push(match &event.rows[..] {
        [] => "no accesses".to_owned(),
        rows => table(rows, fields, width),
    });
    if let more @ 1.. = event.distinct - event.rows.len() {
        let shown: f64 = event.rows.iter().map(|row| row.share).sum();
        let (rows, share) = (counted(more as u64, "row"), percent((1.0 - shown).max(0.0)));
        parts.push(format!("{rows} left out, {share} together; --limit N shows N"));
    }
    parts.join("\n\n")
}

/// Formats what became of the samples of an event, and what they are a sample of.
pub fn account(event: &MemoryEvent) -> String {
    let MemoryEvent {
        name, samples, accesses, without_memory, selected, unknown, without_address, named, total, ..
    } = event;
    let of_selected = |number: u64| percent(share::of(number, *selected));
    let mut lines = vec![("Event", name.clone())];
    lines.push(("Accesses", format!("{} of {}", grouped(*accesses), counted(*samples, "sample"))));
    if *without_memory > 0 {
        lines.push(("", format!("{} accessed no memory", counted(*without_memory, "sample"))));
    }
    if selected < accesses {
        lines.push(("Selected", format!("{} of them", grouped(*selected))));
    }
    if let (Some(mean), Some(slow)) = (total.mean_latency, total.p90_latency) {
        lines.push(("Latency", format!("{mean:.1} cycles on average; 90 % took at most {}", grouped(slow.into()))));
    }
    let told = |number: u64, text: &str| (number > 0).then(|| format!("{}{text}", of_selected(number)));
    lines.extend(told(*unknown, ": no code says what served them, or an unknown one").map(|text| ("Unknown", text)));
    lines.extend(told(*without_address, "").map(|text| ("No address", text)));
    if let Some(NamedAccesses { by_address, by_instruction, only_operand, unknown }) = named {
        let [address, instruction] = [*by_address, *by_instruction].map(of_selected);
        lines.push(("Named", format!("{address} by the address of the data, {instruction} by the instruction")));
        lines.extend(told(only_operand + unknown, ": no PDB says what the data is").map(|text| ("No name", text)));
    }
    lines.extend(event.bias.iter().map(|bias| ("Bias", (*bias).to_owned())));
    properties(&lines)
}

/// Formats the rows. Names that can be long leave no room for the last columns of numbers.
fn table(rows: &[MemoryRow], fields: &[AccessField], width: usize) -> String {
    let more = if fields.iter().any(|field| field.is_name()) { &[][..] } else { &MORE_NUMBERS };
    let numbers = [&NUMBERS, more].concat();
    let names: Vec<&str> = fields.iter().map(|field| field.heading()).collect();
    let headings = [&numbers[..], &names[..]].concat();
    // Addresses of one process need no name of it.
    let owners: BTreeSet<&String> = rows.iter().filter_map(|row| row.data_process.as_ref()).collect();
    let cells = rows.iter().map(|row| {
        let own = fields.iter().map(|field| {
            let text = row.columns.get(&field.name()).cloned().unwrap_or_default();
            match &row.data_process {
                Some(owner) if field.is_address() && owners.len() > 1 => format!("{text} of {owner}"),
                _ => text,
            }
        });
        row.numbers().into_iter().take(numbers.len()).chain(own).collect()
    });
    color::table(&fitted(&headings, &numbers, &names, cells.collect(), width))
}

impl MemoryRow {
    /// Formats the numbers for a table.
    fn numbers(&self) -> [String; 9] {
        let share = |share: f64| format!("{:.1}%", share * 100.0);
        let error = |error: f64| format!("{:.1}", error * 100.0);
        let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        [
            share(self.share),
            error(self.share_error),
            optional(self.latency_share.map(share)),
            optional(self.latency_error.map(error)),
            grouped(self.samples),
            optional(self.mean_latency.map(|mean| format!("{mean:.1}"))),
            optional(self.p90_latency.map(|slow| slow.to_string())),
            share(self.locked_share),
            optional(self.walked_share.map(share)),
        ]
    }
}

fn csv(events: &[MemoryEvent], fields: &[AccessField], context: &mut Context) -> Result<(), Error> {
    let mut out = csv::Writer::from_writer(&mut context.out);
    let names: Vec<String> = fields.iter().map(|field| field.name()).collect();
    out.write_record(FIELDS.into_iter().chain(names.iter().map(String::as_str))).map_err(io::Error::from)?;
    for event in events {
        for row in &event.rows {
            let numbers = [
                event.name.clone(),
                row.samples.to_string(),
                format!("{:.6}", row.share),
                format!("{:.6}", row.share_error),
                real_field(row.latency_share),
                real_field(row.latency_error),
                real_field(row.mean_latency),
                row.p90_latency.map_or_else(String::new, |slow| slow.to_string()),
                format!("{:.6}", row.locked_share),
                real_field(row.walked_share),
                row.data_process.clone().unwrap_or_default(),
            ];
            let own = names.iter().map(|name| row.columns.get(name).cloned().unwrap_or_default());
            out.write_record(numbers.into_iter().chain(own)).map_err(io::Error::from)?;
        }
    }
    Ok(out.flush()?)
}
