//! Accesses by columns, with their shares and latencies.

use std::cmp::Ordering;

use protocol::{AccessOperation, UNKNOWN};
use rustc_hash::FxHashMap;

use crate::access_names::{AccessNames, TextId};
use crate::accesses::{Access, DataAddress, operation_name};
use crate::data_source::{Blocked, MemoryLevel, Snoop, Translation};
use crate::process_keys::ProcessKey;
use crate::proportion::{ratio_error, real};
use crate::read::Contents;
use crate::symbol_index::{Name, Owner, SymbolIndex};

/// Size of a page in bytes.
const PAGE: u64 = 4096;

/// Size of a cache line in bytes.
const LINE: u64 = 64;

/// The percentile of the latency that rows have, as a share.
const PERCENTILE: f64 = 0.9;

/// A column by which accesses are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessColumn {
    /// What served the access.
    Source,
    /// The latency, in classes of which each is twice as wide as the one before it.
    Latency,
    /// What the other caches answered.
    Snoop,
    /// How the address was translated.
    Translation,
    /// Whether the access was locked.
    Locked,
    /// What the access waited for.
    Blocked,
    /// Load or store.
    Operation,
    /// The process.
    Process,
    /// The thread.
    Thread,
    /// The module of the instruction.
    Module,
    /// The function of the instruction.
    Symbol,
    /// The address of the data.
    Data,
    /// Its line of 64 bytes.
    Line,
    /// Its page of 4 KiB.
    Page,
    /// The structure of the data, or its type.
    Type,
    /// The member of the structure; of data without a name, the operand of the instruction.
    Member,
    /// The variable and its member.
    Variable,
}

/// What the accesses of a row have in common. Fields without a column are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    /// Bits of the latency without leading zeros.
    latency: Option<u32>,
    level: Option<MemoryLevel>,
    snoop: Option<Snoop>,
    translation: Option<Translation>,
    locked: Option<bool>,
    blocked: Option<Blocked>,
    operation: Option<AccessOperation>,
    process: Option<ProcessKey>,
    thread: Option<u32>,
    module: Option<Owner>,
    symbol: Option<Name>,
    address: Option<DataAddress>,
    type_name: Option<TextId>,
    member: Option<TextId>,
    variable: Option<TextId>,
}

impl Key {
    fn of(access: &Access, columns: &[AccessColumn], symbol_index: &SymbolIndex, names: &AccessNames) -> Self {
        let mut key = Self::default();
        for column in columns {
            match column {
                AccessColumn::Source => key.level = Some(access.data.level),
                AccessColumn::Latency => key.latency = Some(u32::BITS - access.latency.leading_zeros()),
                AccessColumn::Snoop => key.snoop = Some(access.data.snoop),
                AccessColumn::Translation => key.translation = Some(access.data.translation),
                AccessColumn::Locked => key.locked = Some(access.data.locked),
                AccessColumn::Blocked => key.blocked = Some(access.data.blocked),
                AccessColumn::Operation => key.operation = Some(access.operation),
                AccessColumn::Process => key.process = Some(access.process),
                AccessColumn::Thread => key.thread = Some(access.thread),
                AccessColumn::Module => key.module = Some(symbol_index.owner_and_name(&access.location()).0),
                AccessColumn::Symbol if access.process.id == UNKNOWN && !access.location().kernel => {
                    key.symbol = Some(Name::Unknown);
                }
                AccessColumn::Symbol => key.symbol = Some(symbol_index.owner_and_name(&access.location()).1),
                AccessColumn::Data => key.address = Some(access.address),
                AccessColumn::Line => key.address = Some(access.address.block(LINE)),
                AccessColumn::Page => key.address = Some(access.address.block(PAGE)),
                AccessColumn::Type => key.type_name = Some(names.name(access).type_name),
                AccessColumn::Member => key.member = Some(names.name(access).member),
                AccessColumn::Variable => key.variable = Some(names.name(access).variable),
            }
        }
        key
    }
}

/// The accesses of a row. Each counts as many events as its sample represents.
#[derive(Debug, Clone, Default)]
struct Sum {
    samples: u64,
    events: f64,
    event_squares: f64,
    /// Events times latency, also as a whole number.
    cycles: f64,
    whole_cycles: u64,
    cycle_squares: f64,
    locked: u64,
    /// Number of accesses that say how the address was translated, and of those that missed.
    translated: u64,
    walked: u64,
    /// Each latency, and its events.
    latencies: Vec<(u32, u32)>,
}

impl Sum {
    fn add(&mut self, access: &Access) {
        let (events, latency) = (f64::from(access.events), f64::from(access.latency));
        self.samples += 1;
        self.events += events;
        self.event_squares += events * events;
        self.cycles += events * latency;
        let whole = u64::from(access.events).saturating_mul(access.latency.into());
        self.whole_cycles = self.whole_cycles.saturating_add(whole);
        self.cycle_squares += (events * latency).powi(2);
        self.locked += u64::from(access.data.locked);
        self.translated += u64::from(access.data.translation != Translation::NotReported);
        self.walked += u64::from(access.data.translation == Translation::Miss);
        if access.latency > 0 {
            self.latencies.push((access.latency, access.events));
        }
    }

    /// Returns the 90th percentile of the latencies: the smallest that is as large as those of 90 % of the events.
    fn percentile(&mut self) -> Option<u32> {
        self.latencies.sort_unstable();
        let all: f64 = self.latencies.iter().map(|(_, events)| f64::from(*events)).sum();
        let mut reached = 0.0;
        let at = self.latencies.iter().find(|(_, events)| {
            reached += f64::from(*events);
            reached >= PERCENTILE * all
        });
        at.or(self.latencies.last()).map(|(latency, _)| *latency)
    }
}

/// A row of accesses. Shares are from 0 to 1, errors are standard errors, and latencies are in core clock cycles.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessRow {
    /// Number of samples.
    pub samples: u64,
    /// Share of the events of all accesses.
    pub share: f64,
    /// Its error.
    pub error: f64,
    /// Share of the latency of all accesses; `None` if no access has one.
    pub latency_share: Option<f64>,
    /// Its error.
    pub latency_error: Option<f64>,
    /// Sum of the latencies, each as often as its sample represents events.
    pub cycles: u64,
    /// Mean of the latencies; `None` if the row has none.
    pub mean: Option<f64>,
    /// Their 90th percentile.
    pub percentile: Option<u32>,
    /// Share of the samples whose access was locked.
    pub locked: f64,
    /// Share of page walks among the samples that say how the address was translated.
    pub walked: Option<f64>,
    /// The process to which an address of user mode belongs.
    pub owner: Option<String>,
    /// The text of each column.
    pub cells: Vec<String>,
}

/// Accesses of one source, grouped into rows.
#[derive(Debug)]
pub struct AccessTable<'a> {
    contents: &'a Contents,
    symbol_index: &'a SymbolIndex,
    names: &'a AccessNames,
    columns: Vec<AccessColumn>,
    rows: FxHashMap<Key, Sum>,
    all: Sum,
}

impl<'a> AccessTable<'a> {
    /// Groups accesses by `columns`. Those of types have what `names` has.
    pub fn new<'b>(
        accesses: impl Iterator<Item = &'b Access>,
        columns: &[AccessColumn],
        contents: &'a Contents,
        symbol_index: &'a SymbolIndex,
        names: &'a AccessNames,
    ) -> Self {
        let mut rows: FxHashMap<Key, Sum> = FxHashMap::default();
        let mut all = Sum::default();
        for access in accesses {
            rows.entry(Key::of(access, columns, symbol_index, names)).or_default().add(access);
            all.add(access);
        }
        Self { contents, symbol_index, names, columns: columns.to_vec(), rows, all }
    }

    /// Returns the row of all accesses, without cells.
    #[must_use]
    pub fn total(&self) -> AccessRow {
        self.row(&Key::default(), &mut self.all.clone(), &[])
    }

    /// Returns at most `limit` rows, and the number of all. The rows with the most cycles of latency are first, or
    /// those with the most events if no access has a latency; grouped by it, they are in its order.
    #[must_use]
    pub fn first(mut self, limit: Option<usize>) -> (Vec<AccessRow>, usize) {
        let mut sums: Vec<(Key, Sum)> = self.rows.drain().collect();
        sums.sort_unstable_by(|(one, one_sum), (other, other_sum)| {
            let weight = |sum: &Sum| if self.all.cycles > 0.0 { sum.cycles } else { sum.events };
            let by_weight = match one.latency {
                Some(_) => Ordering::Equal,
                None => weight(other_sum).total_cmp(&weight(one_sum)),
            };
            by_weight.then_with(|| one.cmp(other))
        });
        let number = sums.len();
        let first = sums.into_iter().take(limit.unwrap_or(usize::MAX));
        (first.map(|(key, mut sum)| self.row(&key, &mut sum, &self.columns)).collect(), number)
    }

    fn row(&self, key: &Key, sum: &mut Sum, columns: &[AccessColumn]) -> AccessRow {
        let of = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        let (share, latency_share) = (of(sum.events, self.all.events), of(sum.cycles, self.all.cycles));
        let error = ratio_error(share, sum.event_squares, self.all.event_squares, self.all.events);
        let latency_error = ratio_error(latency_share, sum.cycle_squares, self.all.cycle_squares, self.all.cycles);
        let has_latency = self.all.cycles > 0.0;
        let timed: f64 = sum.latencies.iter().map(|(_, events)| f64::from(*events)).sum();
        AccessRow {
            samples: sum.samples,
            share,
            error,
            latency_share: has_latency.then_some(latency_share),
            latency_error: has_latency.then_some(latency_error),
            cycles: sum.whole_cycles,
            mean: (timed > 0.0).then(|| sum.cycles / timed),
            percentile: sum.percentile(),
            locked: of(real(sum.locked), real(sum.samples)),
            walked: (sum.translated > 0).then(|| of(real(sum.walked), real(sum.translated))),
            owner: key.address.and_then(DataAddress::process).map(|process| self.process(process)),
            cells: columns.iter().map(|column| self.cell(*column, key)).collect(),
        }
    }

    fn cell(&self, column: AccessColumn, key: &Key) -> String {
        let text = match column {
            AccessColumn::Source => key.level.map(|level| level.name().into_owned()),
            AccessColumn::Latency => key.latency.map(latency_class),
            AccessColumn::Snoop => key.snoop.map(|snoop| snoop.name().to_owned()),
            AccessColumn::Translation => key.translation.map(|translation| translation.name().to_owned()),
            AccessColumn::Locked => key.locked.map(|is_locked| if is_locked { "yes" } else { "no" }.to_owned()),
            AccessColumn::Blocked => key.blocked.map(|blocked| blocked.name().to_owned()),
            AccessColumn::Operation => key.operation.map(|operation| operation_name(operation).to_owned()),
            AccessColumn::Process => key.process.map(|process| self.process(process)),
            AccessColumn::Thread => key.thread.map(thread_text),
            AccessColumn::Module => key.module.map(|owner| self.symbol_index.owner_text(owner).to_owned()),
            AccessColumn::Symbol => key.symbol.map(|name| self.symbol_index.name_text(name).into_owned()),
            AccessColumn::Type => key.type_name.map(|name| self.names.text(name).to_owned()),
            AccessColumn::Member => key.member.map(|name| self.names.text(name).to_owned()),
            AccessColumn::Variable => key.variable.map(|name| self.names.text(name).to_owned()),
            AccessColumn::Data | AccessColumn::Line | AccessColumn::Page => {
                key.address.map(|address| address.text(self.contents))
            }
        };
        text.unwrap_or_default()
    }

    fn process(&self, process: ProcessKey) -> String {
        let name = self.contents.processes.name_or_unknown(process);
        if process.id == UNKNOWN { name.to_owned() } else { format!("{name} ({})", process.id) }
    }
}

/// Formats a thread ID.
fn thread_text(id: u32) -> String {
    if id == UNKNOWN { "unknown".to_owned() } else { id.to_string() }
}

/// Formats the latencies with so many bits.
fn latency_class(bits: u32) -> String {
    match bits {
        0 => "not reported".to_owned(),
        1 => "1".to_owned(),
        bits => {
            let first = 1_u64 << (bits - 1);
            format!("{first}-{}", first * 2 - 1)
        }
    }
}
