//! Tables of the samples of a source, grouped by columns.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Mutex;

use protocol::UNKNOWN;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::filter::Filter;
use crate::locations::SampleLocation;
use crate::numbering::{Numbering, ThreadNumbering};
use crate::parallelism::latency;
use crate::process_keys::ProcessKey;
use crate::proportion::{Interval, effective_samples, real};
use crate::read::Contents;
use crate::sample_counts::Total;
use crate::sampled_sources::SampledSource;
use crate::sums::SampleWeight;
use crate::sums::{Adder, Sums};
use crate::symbol_index::{FrameKey, InlineId, Name, Owner, Resolved, SymbolIndex};

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Column {
    /// The process.
    Process,
    /// The thread; requires counts with [`Detail::thread`](crate::Detail::thread).
    Thread,
    /// The processor; requires counts with [`Detail::processor`](crate::Detail::processor).
    Processor,
    /// On how many processors the process ran; requires counts with
    /// [`Detail::parallelism`](crate::Detail::parallelism).
    Parallelism,
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

/// What many rows have in common. Fields without a column are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RowGroup {
    pub process: Option<ProcessKey>,
    pub thread: Option<u32>,
    pub processor: Option<u32>,
    pub parallelism: Option<u32>,
    pub module: Option<Owner>,
}

/// A row: the number of its group, and the rest. Fields without a column are `None`, and the address 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RowKey {
    pub group: u32,
    pub inlined: Option<InlineId>,
    pub name: Option<Name>,
    pub address: u64,
}

impl RowKey {
    pub const fn of_group(group: u32) -> Self {
        Self { group, inlined: None, name: None, address: 0 }
    }
}

// A table of all addresses of a recording can have as many rows as the recording has samples.
const _: () = assert!(size_of::<RowKey>() == 32);

/// Returns the group and the rest of the row of a location. The number of the group is not set.
fn row_of(
    location: &SampleLocation,
    resolved: &Resolved,
    columns: &[Column],
    symbol_index: &SymbolIndex,
) -> (RowGroup, RowKey) {
    let mut group = RowGroup::default();
    let mut key = RowKey::of_group(0);
    for column in columns {
        match column {
            Column::Process => group.process = Some(location.process),
            Column::Thread => group.thread = Some(location.thread),
            Column::Processor => group.processor = Some(location.processor),
            Column::Parallelism => group.parallelism = Some(location.parallelism),
            Column::Module => group.module = Some(resolved.owner),
            // Without a process, the addresses of user mode mean nothing, and have one row.
            Column::Symbol | Column::InlinedSymbol | Column::Frames if is_unattributed(location) => {
                key.name = Some(Name::Unknown);
            }
            Column::Symbol => key.name = Some(resolved.name),
            Column::InlinedSymbol => key.name = Some(symbol_index.innermost(resolved)),
            Column::Frames => (key.name, key.inlined) = (Some(resolved.name), resolved.inlined),
            Column::Address => key.address = location.ip,
        }
    }
    (group, key)
}

/// Returns whether the location is in user mode of a process that is not known.
fn is_unattributed(location: &SampleLocation) -> bool {
    location.process.id == UNKNOWN && !location.kernel
}

/// The samples in a row, and those of which a caller is in it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowTotal {
    /// Samples and events.
    pub weight: SampleWeight,
    /// The events as a share of all events of the source, from 0 to 1.
    pub share: f64,
    /// 95 % confidence interval of the share.
    pub interval: Interval,
}

/// A row of a table. Fields without a column are `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// With callers; `None` in a table [without them](Table::new).
    pub total: Option<RowTotal>,
    /// Samples and events of the row.
    pub weight: SampleWeight,
    /// Events of the row as a share of all events of the source, from 0 to 1.
    pub share: f64,
    /// 95 % confidence interval of the share.
    pub interval: Interval,
    /// Latency of the row as a share of that of all samples of the source; `None` unless the counts have the
    /// parallelism.
    pub latency: Option<f64>,
    /// Process ID, or [`UNKNOWN`].
    pub process: Option<u32>,
    /// Name of the process, or `[unknown]`.
    pub process_name: Option<String>,
    /// Thread ID, or [`UNKNOWN`].
    pub thread: Option<u32>,
    /// Processor.
    pub processor: Option<u32>,
    /// On how many processors the process ran; 0 if that is unknown.
    pub parallelism: Option<u32>,
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
#[derive(Debug)]
pub struct Table<'a> {
    /// All samples of the source, including those in no row.
    pub total: Total,
    /// The samples of all rows.
    pub selected: SampleWeight,
    pub(crate) contents: &'a Contents,
    pub(crate) symbol_index: &'a SymbolIndex,
    pub(crate) source: SampledSource,
    pub(crate) columns: Vec<Column>,
    pub(crate) groups: Numbering<RowGroup>,
    pub(crate) sums: Sums<RowKey>,
    /// The samples in each row, if those in `sums` are with callers, or weighted by their latency.
    pub(crate) own: Option<Sums<RowKey>>,
    /// Latency of all rows, if the samples in `sums` are weighted by it.
    pub(crate) latency: Option<u64>,
}

/// Limits of the rows of a table.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    /// Maximum number of rows.
    pub rows: Option<usize>,
    /// Minimum share of the events, from 0 to 1.
    pub share: f64,
}

/// The first rows of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct FirstRows {
    /// Rows in descending order of events.
    pub rows: Vec<TableRow>,
    /// The other rows.
    pub omitted: OmittedRows,
}

/// Rows that are beyond the limits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OmittedRows {
    /// Number of rows.
    pub rows: usize,
    /// Their events as a share of all events of the source, from 0 to 1.
    pub share: f64,
    /// Whether there are as many rows before them as the limits allow.
    pub by_number: bool,
    /// Whether the first omitted row has less than the minimum share.
    pub by_share: bool,
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

impl<'a> Table<'a> {
    /// Groups the samples of `source` that `filter` selects by `columns`. If the counts have the parallelism, rows are
    /// ordered and limited by their latency.
    #[must_use]
    pub fn new(
        contents: &'a Contents,
        symbol_index: &'a SymbolIndex,
        source: impl Into<SampledSource>,
        columns: &[Column],
        filter: &Filter,
    ) -> Self {
        let source = source.into();
        let has_latency = contents.sample_counts.detail().parallelism;
        let (mut groups, mut sums, mut own) = (Numbering::default(), Sums::default(), Sums::default());
        let (shared_groups, shared_sums, shared_own) = (Mutex::new(&mut groups), sums.shared(), own.shared());
        let counted = contents.sample_counts.location_parts().map(|locations| {
            let mut numbers = ThreadNumbering::new(&shared_groups);
            let (mut adder, mut own) = (Adder::new(&shared_sums), Adder::new(&shared_own));
            let (mut selected, mut all_latency) = (SampleWeight::default(), 0);
            let locations = locations.filter(|(location, _)| location.sampled_source() == source);
            for (location, weight) in locations.filter(|(location, _)| filter.selects_location(location, symbol_index))
            {
                selected += weight;
                let resolved = symbol_index.resolve(&location);
                let (group, key) = row_of(&location, &resolved, columns, symbol_index);
                let key = RowKey { group: numbers.number_of(group), ..key };
                if has_latency {
                    own.add(key, weight);
                    let events = latency(location.process, location.parallelism, weight);
                    all_latency += events;
                    adder.add(key, SampleWeight { events, ..weight });
                } else {
                    adder.add(key, weight);
                }
            }
            adder.finish();
            own.finish();
            (selected, all_latency)
        });
        let (selected, all_latency) = counted.reduce(Default::default, |mut one, other| {
            one.0 += other.0;
            (one.0, one.1 + other.1)
        });
        drop((shared_groups, shared_sums, shared_own));
        let total = contents.sample_counts.total(source);
        let columns = columns.to_vec();
        let (own, latency) = if has_latency { (Some(own), Some(all_latency)) } else { (None, None) };
        Self { total, selected, contents, symbol_index, source, columns, groups, sums, own, latency }
    }

    /// Returns whether the rows have their latency, by which they are ordered.
    #[must_use]
    pub const fn has_latency(&self) -> bool {
        self.latency.is_some()
    }

    /// Returns whether the table has no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sums.parts().iter().all(FxHashMap::is_empty)
    }

    /// Returns all rows, in no particular order.
    pub fn rows(&self) -> impl Iterator<Item = TableRow> {
        self.sums.iter().map(|(key, weight)| self.row(key, weight))
    }

    /// Returns the events of rows that differ only in symbol and address, and the number of rows in each. Only the sums
    /// are made, without their latency and their callers.
    pub fn groups(&self) -> impl Iterator<Item = (TableRow, u64)> {
        let mut sums: FxHashMap<u32, (SampleWeight, u64)> = FxHashMap::default();
        for (key, weight) in self.own.as_ref().unwrap_or(&self.sums).iter() {
            let (sum, rows) = sums.entry(key.group).or_default();
            *sum += weight;
            *rows += 1;
        }
        sums.into_iter().map(|(group, (weight, rows))| {
            let row = self.row_of(&RowKey::of_group(group), weight, weight);
            (TableRow { latency: None, total: None, ..row }, rows)
        })
    }

    /// Returns the rows of at least `least` events, and those of a function with inlined ones, in no particular order.
    /// The other rows are added up to rows without a function, which have the same other columns.
    pub fn rows_of_at_least(&self, least: f64) -> impl Iterator<Item = TableRow> {
        let function = |key: &RowKey| (key.group, key.name);
        let keys = self.sums.iter().map(|(key, _)| key);
        let outer: FxHashSet<_> = keys.filter(|key| key.inlined.is_some()).map(function).collect();
        let is_row =
            move |key: &RowKey, weight: SampleWeight| real(weight.events) >= least || outer.contains(&function(key));
        let mut rest: FxHashMap<u32, SampleWeight> = FxHashMap::default();
        for (key, weight) in self.sums.iter().filter(|(key, weight)| !is_row(key, *weight)) {
            *rest.entry(key.group).or_default() += weight;
        }
        let rows = self.sums.iter().filter(move |(key, weight)| is_row(key, *weight));
        let rest = rest.into_iter().map(|(group, weight)| self.row(&RowKey::of_group(group), weight));
        rows.map(|(key, weight)| self.row(key, weight)).chain(rest)
    }

    /// Returns all rows in descending order of events.
    #[must_use]
    pub fn sorted_rows(&self) -> Vec<TableRow> {
        self.first(Limits::default()).rows
    }

    /// Returns the first rows in descending order of events. Only these are made, so a few rows of a large table cost
    /// little.
    #[must_use]
    pub fn first(&self, limits: Limits) -> FirstRows {
        self.first_with_keys(limits).0
    }

    /// Returns the first rows as [`first`](Self::first) does, and their keys.
    pub(crate) fn first_with_keys(&self, limits: Limits) -> (FirstRows, Vec<RowKey>) {
        let max = limits.rows.unwrap_or(usize::MAX);
        // One more row says why the rows from it on are omitted.
        let wanted = max.saturating_add(1);
        let mut keys: Vec<(&RowKey, SampleWeight)> = self
            .sums
            .parts()
            .par_iter()
            .flat_map_iter(|part| self.first_keys(part.iter().map(|(key, weight)| (key, *weight)).collect(), wanted))
            .collect();
        keys = self.first_keys(keys, wanted);
        keys.sort_unstable_by(|one, other| self.order(one, other));
        let share = |weight: SampleWeight| self.share(weight);
        let shown = keys.iter().take(max).take_while(|(_, weight)| share(*weight) >= limits.share).count();
        let next = keys.get(shown);
        let mut rows: Vec<(TableRow, RowKey)> =
            keys.iter().take(shown).map(|(key, weight)| (self.row(key, *weight), **key)).collect();
        rows.sort_by(|(one, _), (other, _)| compare(one, other));
        let (rows, row_keys): (Vec<TableRow>, Vec<RowKey>) = rows.into_iter().unzip();
        let shown_events: u64 = keys.iter().take(shown).map(|(_, weight)| weight.events).sum();
        let all_events = self.latency.unwrap_or(self.selected.events);
        let omitted = OmittedRows {
            rows: self.len() - shown,
            share: share(SampleWeight { events: all_events.saturating_sub(shown_events), samples: 0 }),
            by_number: shown == max,
            by_share: next.is_some_and(|(_, weight)| share(*weight) < limits.share),
        };
        (FirstRows { rows, omitted }, row_keys)
    }

    fn len(&self) -> usize {
        self.sums.parts().iter().map(FxHashMap::len).sum()
    }

    /// Returns the first rows by [`order`](Self::order), themselves in no particular order.
    fn first_keys<'b>(
        &self,
        mut keys: Vec<(&'b RowKey, SampleWeight)>,
        wanted: usize,
    ) -> Vec<(&'b RowKey, SampleWeight)> {
        if keys.len() > wanted {
            keys.select_nth_unstable_by(wanted, |one, other| self.order(one, other));
            keys.truncate(wanted);
        }
        keys
    }

    /// Orders by events, descending, then by numbers, so that the rows within the limits are the same each time.
    fn order(
        &self,
        (one, one_weight): &(&RowKey, SampleWeight),
        (other, other_weight): &(&RowKey, SampleWeight),
    ) -> Ordering {
        let weights = (other_weight.events, other_weight.samples).cmp(&(one_weight.events, one_weight.samples));
        let parts = |key: &RowKey| (self.groups.get(key.group).copied(), key.name, key.inlined, key.address);
        weights.then_with(|| parts(one).cmp(&parts(other)))
    }

    /// Returns what a sum is of all samples of the source, by which the rows are ordered.
    fn share(&self, weight: SampleWeight) -> f64 {
        share_of(weight, self.latency.map_or(self.total.weight.events, |_| self.total.latency))
    }

    fn row(&self, key: &RowKey, weight: SampleWeight) -> TableRow {
        let own = self.own.as_ref().map_or(weight, |own| own.get(key).unwrap_or_default());
        self.row_of(key, weight, own)
    }

    fn row_of(&self, key: &RowKey, weight: SampleWeight, own: SampleWeight) -> TableRow {
        let RowGroup { process, thread, processor, parallelism, module } =
            self.groups.get(key.group).copied().unwrap_or_default();
        let effective = effective_samples(real(self.total.weight.events), real(self.total.squares));
        let total_of = |weight| {
            let share = share_of(weight, self.total.weight.events);
            RowTotal { weight, share, interval: Interval::wilson(share, effective) }
        };
        let latency = self.latency.map(|_| self.share(weight));
        let total = (self.own.is_some() && latency.is_none()).then(|| total_of(weight));
        let RowTotal { weight, share, interval } = total_of(own);
        let is_frames = self.columns.contains(&Column::Frames);
        let frames = key.name.filter(|_| is_frames).map(|outer| FrameKey { outer, inlined: key.inlined });
        let Self { contents, symbol_index, .. } = self;
        TableRow {
            total,
            weight,
            share,
            interval,
            latency,
            process: process.map(|process| process.id),
            process_name: process.map(|process| contents.processes.name_or_unknown(process).to_owned()),
            thread,
            processor,
            parallelism,
            module: module.map(|owner| symbol_index.owner_text(owner).to_owned()),
            symbol: key.name.filter(|_| !is_frames).map(|name| symbol_index.name_text(name).into_owned()),
            frames: frames.map(|frames| symbol_index.frame_texts(frames).map(Cow::into_owned).collect()),
            address: self.columns.contains(&Column::Address).then_some(key.address),
        }
    }
}

/// Returns the events as a share of so many.
fn share_of(weight: SampleWeight, all: u64) -> f64 {
    if all > 0 { real(weight.events) / real(all) } else { 0.0 }
}

/// Orders by latency and events, descending, then by the columns.
fn compare(one: &TableRow, other: &TableRow) -> Ordering {
    let weight = |row: &TableRow| {
        let weight = row.total.map_or(row.weight, |total| total.weight);
        (weight.events, weight.samples)
    };
    let latency = |row: &TableRow| row.latency.unwrap_or_default();
    let by_weight = latency(other).total_cmp(&latency(one)).then_with(|| weight(other).cmp(&weight(one)));
    by_weight.then_with(|| names(one).cmp(&names(other)))
}

fn names(row: &TableRow) -> impl Ord {
    let numbers = (row.process, row.thread, row.processor, row.parallelism);
    (&row.process_name, numbers, &row.module, &row.symbol, &row.frames, row.address)
}
