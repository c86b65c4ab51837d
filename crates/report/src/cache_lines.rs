//! Cache lines with loads that hit a modified copy in another cache: what several threads share.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use protocol::UNKNOWN;
use rustc_hash::FxHashMap;

use crate::access_names::{AccessNames, TextId};
use crate::accesses::{Access, DataAddress};
use crate::data_source::{MemoryLevel, ModifiedCopy, reports_modified};
use crate::process_keys::ProcessKey;
use crate::proportion::{ratio_error, real};
use crate::symbol_index::{Name, Owner, SymbolIndex};

/// What is taken for a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineSize {
    /// 64 bytes.
    #[default]
    One,
    /// 128 bytes: the two lines that processors fetch together.
    Two,
}

impl LineSize {
    /// Returns its bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Self::One => 64,
            Self::Two => 128,
        }
    }
}

/// How threads share a line, as far as the samples show. An offset is that of the first byte of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// One thread. Another one changed the line without a sample, or the thread moved to another processor.
    OneThread,
    /// Several threads, none of which accesses the offset of another one: false sharing.
    False,
    /// Several threads at each offset: true sharing.
    True,
    /// Several threads at some of the offsets, and one at each of the others.
    Mixed,
}

impl Sharing {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneThread => "one thread",
            Self::False => "false",
            Self::True => "true",
            Self::Mixed => "mixed",
        }
    }
}

/// Numbers of accesses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineLoads {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Stores that hit the first-level cache, where records say it.
    pub stores_l1: u64,
    /// Loads that hit a modified copy of a cache in this node.
    pub local_modified: u64,
    /// Loads that hit one of a cache in another node.
    pub remote_modified: u64,
}

impl LineLoads {
    fn add(&mut self, access: &Access) {
        self.loads += u64::from(access.is_load());
        if access.is_store() {
            self.stores += 1;
            self.stores_l1 += u64::from(access.data.level == MemoryLevel::L1);
        }
        match modified_copy(access) {
            Some(ModifiedCopy::Local) => self.local_modified += 1,
            Some(ModifiedCopy::Remote) => self.remote_modified += 1,
            None => {}
        }
    }

    /// Returns the number of loads that hit a modified copy.
    #[must_use]
    pub const fn modified(&self) -> u64 {
        self.local_modified + self.remote_modified
    }
}

/// Mean of latencies in core clock cycles; `None` without one.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: u64,
    number: u64,
}

impl Mean {
    fn add(&mut self, latency: u32) {
        self.sum += u64::from(latency);
        self.number += u64::from(latency > 0);
    }

    fn value(self) -> Option<f64> {
        (self.number > 0).then(|| real(self.sum) / real(self.number))
    }
}

/// The accesses of a thread in one function to one offset of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct LineAccess {
    /// Bytes from the start of the line.
    pub offset: u64,
    /// The process of the instruction.
    pub process: ProcessKey,
    /// Its thread, or [`UNKNOWN`].
    pub thread: u32,
    /// Module of the instruction.
    pub module: String,
    /// Function of the instruction.
    pub symbol: String,
    /// The variable and its member, if it has a name: that of the first access.
    pub variable: Option<String>,
    /// The accesses.
    pub loads: LineLoads,
    /// Number of processors on which they were.
    pub processors: usize,
    /// Mean latency of the loads that hit a modified copy in another node.
    pub remote_cycles: Option<f64>,
    /// Mean latency of those in this node.
    pub local_cycles: Option<f64>,
    /// Mean latency of all other loads.
    pub other_cycles: Option<f64>,
}

/// A line with loads that hit a modified copy.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheLine {
    /// Where it begins.
    pub address: DataAddress,
    /// Its accesses.
    pub loads: LineLoads,
    /// Its loads by what served them.
    pub levels: BTreeMap<MemoryLevel, u64>,
    /// Share of the loads of all lines that hit a modified copy, from 0 to 1.
    pub share: f64,
    /// Standard error of the share.
    pub error: f64,
    /// Number of threads that accessed it.
    pub threads: usize,
    /// What these have in common.
    pub sharing: Sharing,
    /// Its accesses by offset, thread and function: those with the most loads that hit a modified copy first.
    pub accesses: Vec<LineAccess>,
}

/// The lines of a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CacheLines {
    /// All accesses.
    pub loads: LineLoads,
    /// Number of accesses without an address, or with one of an unknown process: they are in no line.
    pub without_line: u64,
    /// Loads that hit a modified copy among those.
    pub modified_without_line: u64,
    /// Number of loads whose records cannot say that they hit a modified copy.
    pub silent: u64,
    /// The lines, those with the most loads that hit a modified copy first.
    pub lines: Vec<CacheLine>,
    /// Number of lines, also of those beyond the limit.
    pub number: usize,
}

/// What the accesses of a [`LineAccess`] have in common.
type Place = (u64, ProcessKey, u32, Owner, Name);

/// A [`LineAccess`] while its accesses are added.
#[derive(Default)]
struct PlaceSum {
    loads: LineLoads,
    processors: BTreeSet<u32>,
    remote: Mean,
    local: Mean,
    other: Mean,
    variable: Option<TextId>,
}

impl PlaceSum {
    fn add(&mut self, access: &Access) {
        self.loads.add(access);
        self.processors.insert(access.processor);
        if access.is_load() {
            let mean = match modified_copy(access) {
                Some(ModifiedCopy::Remote) => &mut self.remote,
                Some(ModifiedCopy::Local) => &mut self.local,
                None => &mut self.other,
            };
            mean.add(access.latency);
        }
    }
}

/// Returns where another cache had a modified copy of what was loaded.
fn modified_copy(access: &Access) -> Option<ModifiedCopy> {
    access.data.modified_copy().filter(|_| access.is_load())
}

impl CacheLines {
    /// Finds the lines of `accesses` with loads that hit a modified copy, at most `limit` of them. Their data have the
    /// names of `names`.
    #[must_use]
    pub fn new(
        accesses: &[Access],
        size: LineSize,
        limit: Option<usize>,
        symbol_index: &SymbolIndex,
        names: &AccessNames,
    ) -> Self {
        let mut found = Self::default();
        let mut modified: FxHashMap<DataAddress, u64> = FxHashMap::default();
        for access in accesses {
            found.loads.add(access);
            found.silent += u64::from(access.is_load() && !reports_modified(access.encoding));
            let number = u64::from(modified_copy(access).is_some());
            if access.address.number().is_none() {
                found.without_line += 1;
                found.modified_without_line += number;
            } else if number > 0 {
                *modified.entry(access.address.block(size.bytes())).or_default() += number;
            }
        }
        let mut order: Vec<(DataAddress, u64)> = modified.into_iter().collect();
        order.sort_unstable_by_key(|(address, number)| (Reverse(*number), *address));
        found.number = order.len();
        order.truncate(limit.unwrap_or(usize::MAX));
        let mut shown: FxHashMap<DataAddress, Vec<&Access>> =
            order.iter().map(|(address, _)| (*address, Vec::new())).collect();
        for access in accesses {
            if let Some(of_line) = shown.get_mut(&access.address.block(size.bytes())) {
                of_line.push(access);
            }
        }
        let all = found.loads.modified();
        let line = |(address, _): &(DataAddress, u64)| {
            let accesses = shown.get(address).map(Vec::as_slice).unwrap_or_default();
            CacheLine::new(*address, accesses, size, all, (symbol_index, names))
        };
        found.lines = order.iter().map(line).collect();
        found
    }
}

impl CacheLine {
    fn new(
        address: DataAddress,
        accesses: &[&Access],
        size: LineSize,
        all_modified: u64,
        (symbol_index, names): (&SymbolIndex, &AccessNames),
    ) -> Self {
        let mut loads = LineLoads::default();
        let mut levels: BTreeMap<MemoryLevel, u64> = BTreeMap::new();
        let mut places: BTreeMap<Place, PlaceSum> = BTreeMap::new();
        let mut threads: BTreeMap<u64, BTreeSet<(ProcessKey, u32)>> = BTreeMap::new();
        for access in accesses {
            loads.add(access);
            if access.is_load() {
                *levels.entry(access.data.level).or_default() += 1;
            }
            let offset = access.address.number().unwrap_or_default() & (size.bytes() - 1);
            let (owner, name) = symbol_index.owner_and_name(&access.location());
            let place = places.entry((offset, access.process, access.thread, owner, name)).or_default();
            place.add(access);
            place.variable = place.variable.or_else(|| names.variable(access));
            if access.thread != UNKNOWN {
                threads.entry(offset).or_default().insert((access.process, access.thread));
            }
        }
        let row = |((offset, process, thread, owner, name), sum): (Place, PlaceSum)| LineAccess {
            offset,
            process,
            thread,
            module: symbol_index.owner_text(owner).to_owned(),
            symbol: symbol_index.name_text(name).into_owned(),
            variable: sum.variable.map(|variable| names.text(variable).to_owned()),
            loads: sum.loads,
            processors: sum.processors.len(),
            remote_cycles: sum.remote.value(),
            local_cycles: sum.local.value(),
            other_cycles: sum.other.value(),
        };
        let mut rows: Vec<LineAccess> = places.into_iter().map(row).collect();
        rows.sort_by_key(|row| (Reverse(row.loads.modified()), Reverse(row.loads.stores), row.offset));
        let share = real(loads.modified()) / real(all_modified.max(1));
        Self {
            address,
            levels,
            share,
            error: ratio_error(share, real(loads.modified()), real(all_modified), real(all_modified)),
            threads: threads.values().flatten().collect::<BTreeSet<_>>().len(),
            sharing: sharing(&threads),
            loads,
            accesses: rows,
        }
    }
}

/// Returns what the threads at each offset of a line have in common.
fn sharing(threads: &BTreeMap<u64, BTreeSet<(ProcessKey, u32)>>) -> Sharing {
    let different: BTreeSet<_> = threads.values().flatten().collect();
    let is_shared = |at: &&BTreeSet<_>| at.len() > 1;
    match (different.len(), threads.values().filter(is_shared).count()) {
        (0 | 1, _) => Sharing::OneThread,
        (_, 0) => Sharing::False,
        (_, shared) if shared == threads.len() => Sharing::True,
        _ => Sharing::Mixed,
    }
}
