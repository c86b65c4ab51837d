//! Last branches by source and target.

use std::cmp::Reverse;
use std::ops::AddAssign;

use protocol::{ALL_EVENTS, BranchRecord, Prediction, is_kernel_address};
use recording::StackId;
use rustc_hash::FxHashMap;

use crate::filter::Filter;
use crate::input::Input;
use crate::last_branches::{LastBranchStats, for_each_branch_stack};
use crate::locations::SampleLocation;
use crate::modules::ModuleId;
use crate::process_keys::ProcessKey;
use crate::processes::Processes;
use crate::read::{Contents, ExportError};
use crate::symbol_index::SymbolIndex;

/// How often a branch was among the last ones of a sample, and what the processor reports of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastBranchCount {
    /// Number of records.
    pub count: u64,
    /// Number of records that say whether it was predicted.
    pub reported: u64,
    /// Number of records that say that it was not.
    pub mispredicted: u64,
    /// Number of records with the cycles since the branch before it.
    pub timed: u64,
    /// Sum of these cycles.
    pub cycles: u64,
}

impl LastBranchCount {
    pub(crate) fn of(record: &BranchRecord) -> Self {
        Self {
            count: 1,
            reported: (record.prediction != Prediction::NotReported).into(),
            mispredicted: (record.prediction == Prediction::Mispredicted).into(),
            timed: (record.cycles > 0).into(),
            cycles: record.cycles.into(),
        }
    }
}

impl AddAssign for LastBranchCount {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.reported += other.reported;
        self.mispredicted += other.mispredicted;
        self.timed += other.timed;
        self.cycles += other.cycles;
    }
}

/// A branch of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ProcessBranch {
    process: ProcessKey,
    from: u64,
    to: u64,
}

/// An end of a branch: an offset in a module, or an address of a process, or of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum BranchEnd {
    InModule(ModuleId, u64),
    Outside(Option<ProcessKey>, u64),
}

impl BranchEnd {
    fn of(location: &SampleLocation, processes: &Processes) -> Self {
        let SampleLocation { process, kernel, ip, .. } = *location;
        match processes.module_at(process, kernel, ip) {
            Some((module, offset)) => Self::InModule(module, offset),
            None => Self::Outside((!kernel).then_some(process), ip),
        }
    }
}

/// A branch of all processes that have its code, with its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastBranch {
    /// The branch instruction, in one of these processes.
    pub from: SampleLocation,
    /// The target.
    pub to: SampleLocation,
    /// How often it was among the last branches.
    pub count: LastBranchCount,
}

/// The last branches of the selected samples. Memory grows with the number of distinct branches.
#[derive(Debug, Default)]
pub struct LastBranchTable {
    counts: FxHashMap<ProcessBranch, LastBranchCount>,
    /// What became of them.
    pub stats: LastBranchStats,
}

impl LastBranchTable {
    /// Counts the last branches of the samples that `filter` selects, as [`for_each_branch_stack`] does.
    ///
    /// # Errors
    /// If the recording cannot be read again.
    pub fn read(contents: &Contents, filter: &Filter, input: &mut dyn Input) -> Result<Self, ExportError> {
        let mut counts: FxHashMap<ProcessBranch, LastBranchCount> = FxHashMap::default();
        let stats = for_each_branch_stack(contents, filter, input, |stack| {
            for branch in &stack.branches {
                let key = ProcessBranch { process: stack.process, from: branch.from, to: branch.to };
                *counts.entry(key).or_default() += LastBranchCount::of(branch);
            }
            Ok(())
        })?;
        Ok(Self { counts, stats })
    }

    /// Returns the branch instructions, each with the number of its records.
    pub fn sources(&self) -> impl Iterator<Item = (SampleLocation, u64)> {
        self.counts.iter().map(|(branch, count)| (location(branch.process, branch.from), count.count))
    }

    /// Returns the branch instructions and their targets, each with the number of its records.
    pub fn ends(&self) -> impl Iterator<Item = (SampleLocation, u64)> {
        let target =
            |(branch, count): (&ProcessBranch, &LastBranchCount)| (location(branch.process, branch.to), count.count);
        self.sources().chain(self.counts.iter().map(target))
    }

    /// Returns the branches that begin in the modules and symbols that `filter` selects, the most frequent first; equal
    /// ones are in the order of their addresses.
    #[must_use]
    pub fn rows(&self, processes: &Processes, symbol_index: &SymbolIndex, filter: &Filter) -> Vec<LastBranch> {
        let mut all: Vec<(&ProcessBranch, &LastBranchCount)> = self.counts.iter().collect();
        // The location of a row is that in the first process that has it.
        all.sort_unstable_by_key(|(branch, _)| **branch);
        let mut places: FxHashMap<[BranchEnd; 2], usize> = FxHashMap::default();
        let mut rows: Vec<LastBranch> = Vec::new();
        for (branch, count) in all {
            let [from, to] = [branch.from, branch.to].map(|address| location(branch.process, address));
            if !filter.selects_names(&from, symbol_index) {
                continue;
            }
            let ends = [&from, &to].map(|location| BranchEnd::of(location, processes));
            let place = *places.entry(ends).or_insert_with(|| {
                rows.push(LastBranch { from, to, count: LastBranchCount::default() });
                rows.len() - 1
            });
            if let Some(row) = rows.get_mut(place) {
                row.count += *count;
            }
        }
        rows.sort_by_key(|row| (Reverse(row.count.count), row.from.ip, row.to.ip));
        rows
    }
}

/// Returns the location of an address of a process. An address in the upper half belongs to the kernel.
pub(crate) fn location(process: ProcessKey, ip: u64) -> SampleLocation {
    SampleLocation {
        event: ALL_EVENTS,
        core_type: 0,
        process,
        thread: 0,
        processor: 0,
        parallelism: 0,
        kernel: is_kernel_address(ip),
        ip,
        stack: StackId::NOT_RECORDED,
    }
}
