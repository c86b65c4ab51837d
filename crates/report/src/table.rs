//! Tables of the samples of a source, grouped by columns.

use std::borrow::Cow;
use std::cmp::Ordering;

use protocol::UNKNOWN;
use rustc_hash::FxHashMap;

use crate::filter::Filter;
use crate::locations::{SampleLocation, SampleWeight};
use crate::proportion::{Interval, effective_samples, real};
use crate::read::Contents;
use crate::sample_counts::Total;
use crate::sampled_sources::SampledSource;
use crate::symbol_index::{FrameKey, Name, Owner, SymbolIndex};

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// The process.
    Process,
    /// The thread; requires counts with [`Detail::thread`](crate::Detail::thread).
    Thread,
    /// The processor; requires counts with [`Detail::processor`](crate::Detail::processor).
    Processor,
    /// The module.
    Module,
    /// The symbol.
    Symbol,
    /// The innermost function, which can be inlined. It takes the place of the symbol.
    InlinedSymbol,
    /// The symbol and the functions that are inlined into it.
    Frames,
    /// The address.
    Address,
}

/// Group of a row. Fields without a column are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct GroupKey {
    process: Option<u32>,
    thread: Option<u32>,
    processor: Option<u32>,
    module: Option<Owner>,
    symbol: Option<Name>,
    frames: Option<FrameKey>,
    address: Option<u64>,
}

impl GroupKey {
    fn of(location: &SampleLocation, columns: &[Column], symbol_index: &SymbolIndex) -> Self {
        let mut key = Self::default();
        for column in columns {
            match column {
                Column::Process => key.process = Some(location.process),
                Column::Thread => key.thread = Some(location.thread),
                Column::Processor => key.processor = Some(location.processor),
                Column::Module => key.module = Some(symbol_index.owner_and_name(location).0),
                // Without a process, the addresses of user mode mean nothing, and have one row.
                Column::Symbol | Column::InlinedSymbol if is_unattributed(location) => key.symbol = Some(Name::Unknown),
                Column::Frames if is_unattributed(location) => key.frames = Some(FrameKey::UNKNOWN),
                Column::Symbol => key.symbol = Some(symbol_index.owner_and_name(location).1),
                Column::InlinedSymbol => key.symbol = Some(symbol_index.innermost(location)),
                Column::Frames => key.frames = Some(symbol_index.frame_key(location)),
                Column::Address => key.address = Some(location.ip),
            }
        }
        key
    }
}

/// Returns whether the location is in user mode of a process that is not known.
fn is_unattributed(location: &SampleLocation) -> bool {
    location.process == UNKNOWN && !location.kernel
}

/// A row of a table. Fields without a column are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// Samples and events of the row.
    pub weight: SampleWeight,
    /// Events of the row as a share of all events of the source, from 0 to 1.
    pub share: f64,
    /// 95 % confidence interval of the share.
    pub interval: Interval,
    /// Process ID, or [`UNKNOWN`].
    pub process: Option<u32>,
    /// Name of the process, or `[unknown]`.
    pub process_name: Option<String>,
    /// Thread ID, or [`UNKNOWN`].
    pub thread: Option<u32>,
    /// Processor.
    pub processor: Option<u32>,
    /// Name of the module, or `[kernel]` or `[unknown]`.
    pub module: Option<String>,
    /// Name of the symbol, or a placeholder as of [`SymbolIndex::symbol`].
    pub symbol: Option<String>,
    /// Names of the symbol and of the functions that are inlined into it, the innermost last.
    pub frames: Option<Vec<String>>,
    /// Address.
    pub address: Option<u64>,
}

/// The samples of a source, grouped into rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// All samples of the source, including those in no row.
    pub total: Total,
    /// The samples of all rows.
    pub selected: SampleWeight,
    /// Rows in descending order of events.
    pub rows: Vec<TableRow>,
}

impl TableRow {
    /// Returns name and number of the process.
    pub(crate) fn process_label(&self) -> String {
        let name = self.process_name.as_deref().unwrap_or_default();
        match self.process {
            Some(id) if id != UNKNOWN => format!("{name} ({id})"),
            _ => name.to_owned(),
        }
    }
}

impl Table {
    /// Groups the samples of `source` that `filter` selects by `columns`.
    #[must_use]
    pub fn new(
        contents: &Contents,
        symbol_index: &SymbolIndex,
        source: impl Into<SampledSource>,
        columns: &[Column],
        filter: &Filter,
    ) -> Self {
        let mut sums: FxHashMap<GroupKey, SampleWeight> = FxHashMap::default();
        let source = source.into();
        let locations = contents.sample_counts.locations().filter(|(location, _)| location.sampled_source() == source);
        let mut selected = SampleWeight::default();
        for (location, weight) in locations.filter(|(location, _)| filter.selects_location(location, symbol_index)) {
            selected += weight;
            *sums.entry(GroupKey::of(&location, columns, symbol_index)).or_default() += weight;
        }
        let total = contents.sample_counts.total(source);
        let mut rows: Vec<TableRow> =
            sums.iter().map(|(key, weight)| row(key, *weight, &total, contents, symbol_index)).collect();
        rows.sort_by(compare);
        Self { total, selected, rows }
    }
}

fn row(
    key: &GroupKey,
    weight: SampleWeight,
    total: &Total,
    contents: &Contents,
    symbol_index: &SymbolIndex,
) -> TableRow {
    let events = real(total.weight.events);
    let share = if events > 0.0 { real(weight.events) / events } else { 0.0 };
    TableRow {
        weight,
        share,
        interval: Interval::wilson(share, effective_samples(events, real(total.squares))),
        process: key.process,
        process_name: key.process.map(|process| contents.processes.name_or_unknown(process).to_owned()),
        thread: key.thread,
        processor: key.processor,
        module: key.module.map(|owner| symbol_index.owner_text(owner).to_owned()),
        symbol: key.symbol.map(|name| symbol_index.name_text(name).into_owned()),
        frames: key.frames.map(|frames| symbol_index.frame_texts(frames).map(Cow::into_owned).collect()),
        address: key.address,
    }
}

/// Orders by events, descending, then by the columns, so that the order is deterministic.
fn compare(one: &TableRow, other: &TableRow) -> Ordering {
    let weights = (other.weight.events, other.weight.samples).cmp(&(one.weight.events, one.weight.samples));
    weights.then_with(|| names(one).cmp(&names(other)))
}

fn names(row: &TableRow) -> impl Ord {
    (&row.process_name, row.process, row.thread, row.processor, &row.module, &row.symbol, &row.frames, row.address)
}
