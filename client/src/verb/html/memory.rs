//! The part of the page about accesses: where memory is slow, as `mem report` says it.

use report::{AccessNames, Accesses, SampledSource};
use serde::Serialize;

use crate::cli::AccessField;
use crate::reading::load::LoadedRecording;
use crate::verb::mem::report::{MemoryEvent, MemoryRow, account};

/// Section, style and script.
pub const PARTS: [&str; 3] = [include_str!("memory.html"), include_str!("memory.css"), include_str!("memory.js")];

/// Maximum number of rows of a table.
const MAX_ROWS: usize = 200;

/// Headings of the tables, and what they group the accesses by.
const TABLES: [(&str, &[AccessField]); 5] = [
    ("By source", &[AccessField::Source]),
    ("By latency", &[AccessField::Latency]),
    ("By function", &[AccessField::Process, AccessField::Module, AccessField::Symbol]),
    ("By cache line", &[AccessField::Line]),
    ("By data", &[AccessField::Variable]),
];

/// The accesses of a source.
#[derive(Serialize)]
pub struct Memory {
    /// What became of the samples, and what they are a sample of.
    account: String,
    tables: Vec<MemoryTable>,
}

#[derive(Serialize)]
struct MemoryTable {
    heading: &'static str,
    /// Name and heading of each column.
    columns: Vec<(String, &'static str)>,
    /// Whether the texts are names of code or data, and not what halprof calls a group.
    names: bool,
    rows: Vec<MemoryRow>,
    /// Number of rows that the page does not have, and their share of the events.
    omitted: usize,
    omitted_share: f64,
}

impl Memory {
    /// Groups the accesses of a source; `None` without any.
    pub fn new(
        loaded: &LoadedRecording,
        accesses: &Accesses,
        source: SampledSource,
        names: &AccessNames,
    ) -> Option<Self> {
        accesses.of(source).next()?;
        let event = |(_, fields)| MemoryEvent::new(loaded, accesses, source, (fields, Some(MAX_ROWS)), Some(names));
        let events = TABLES.map(event);
        // Any of them has what is said of all accesses.
        let [.., all] = &events;
        let account = account(all);
        let has_latency = all.total.latency_share.is_some();
        let has_names = all.named.as_ref().is_some_and(|numbers| numbers.by_address + numbers.by_instruction > 0);
        let is_shown = |fields: &[AccessField]| match fields {
            [AccessField::Latency] => has_latency,
            [AccessField::Variable] => has_names,
            _ => true,
        };
        let shown = TABLES.into_iter().zip(events).filter(|((_, fields), _)| is_shown(fields));
        let tables = shown.map(|((heading, fields), MemoryEvent { rows, distinct, .. })| {
            let shown: f64 = rows.iter().map(|row| row.share).sum();
            MemoryTable {
                heading,
                columns: fields.iter().map(|field| (field.name(), field.heading())).collect(),
                names: fields.iter().any(|field| field.is_name()),
                omitted: distinct - rows.len(),
                omitted_share: (1.0 - shown).max(0.0),
                rows,
            }
        });
        Some(Self { account, tables: tables.collect() })
    }
}
