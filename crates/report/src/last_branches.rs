//! The last branches of samples, without those of other processes.
//!
//! The registers in which a processor keeps branches do not belong to a process, and a context switch does not empty
//! them. So the branches of a sample are cut at the first one, from the newest to the oldest, that its process cannot
//! have: one with an address of user mode in no module and no compiled function of the process.

use std::io;

use protocol::{AnySample, BranchRecord, Record, is_kernel_address};
use recording::Reader;
use rustc_hash::FxHashMap;

use crate::filter::Filter;
use crate::input::Input;
use crate::process_keys::ProcessKey;
use crate::processes::Processes;
use crate::read::{Contents, ExportError, each_of};
use crate::selected::within;

/// A sample with its last branches.
#[derive(Debug, Clone)]
pub struct BranchStack {
    /// The sample.
    pub sample: AnySample,
    /// Its process.
    pub process: ProcessKey,
    /// Its branches, the newest first, without those that were cut.
    pub branches: Vec<BranchRecord>,
}

/// What became of the last branches of the selected samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastBranchStats {
    /// Number of samples with branches.
    pub samples: u64,
    /// Number of their branches, without those that were cut.
    pub branches: u64,
    /// Number of samples of which branches were cut.
    pub cut_samples: u64,
    /// Number of branches that were cut.
    pub cut: u64,
}

/// The sample of a processor whose branches follow.
struct OpenSample {
    sample: AnySample,
    process: ProcessKey,
    has_branches: bool,
    is_cut: bool,
}

/// Decides which last branches are shown, in the order of the records of each processor.
#[derive(Default)]
pub(crate) struct BranchGate {
    open: FxHashMap<u32, OpenSample>,
    stats: LastBranchStats,
}

impl BranchGate {
    /// Notes a sample, whose branches are admitted from now on.
    pub fn open(&mut self, sample: AnySample, process: ProcessKey) {
        let open = OpenSample { sample, process, has_branches: false, is_cut: false };
        self.open.insert(sample.processor, open);
    }

    /// Returns the process of a branch, unless it is cut or its sample was not noted.
    pub fn admit(&mut self, branch: &BranchRecord, processes: &Processes) -> Option<ProcessKey> {
        let Self { open, stats } = self;
        let open = open.get_mut(&branch.processor)?;
        let OpenSample { sample, process, .. } = *open;
        let key = (branch.time, branch.process, branch.thread, branch.event);
        if key != (sample.time, sample.process, sample.thread, sample.event) {
            return None;
        }
        if !open.has_branches {
            open.has_branches = true;
            stats.samples += 1;
        }
        let is_impossible = |address| !is_kernel_address(address) && !processes.has_code_at(process, address);
        if !open.is_cut && (is_impossible(branch.from) || is_impossible(branch.to)) {
            open.is_cut = true;
            stats.cut_samples += 1;
        }
        if open.is_cut {
            stats.cut += 1;
            return None;
        }
        stats.branches += 1;
        Some(process)
    }

    /// Returns what became of the branches so far.
    pub const fn stats(&self) -> LastBranchStats {
        self.stats
    }
}

/// Passes each sample that `filter` selects by its source, process, processor, thread and time to `each` with its last
/// branches, if it has any: the samples of a processor in their order. `input` is the recording from which `contents`
/// was read.
///
/// # Errors
/// If the recording cannot be read again, or `each` fails.
pub fn for_each_branch_stack(
    contents: &Contents,
    filter: &Filter,
    input: &mut dyn Input,
    mut each: impl FnMut(&BranchStack) -> io::Result<()>,
) -> Result<LastBranchStats, ExportError> {
    for_each_sample(contents, filter, input, |stack| if stack.branches.is_empty() { Ok(()) } else { each(stack) })
}

/// Passes what [`for_each_branch_stack`] does, and the samples without branches.
pub(crate) fn for_each_sample(
    contents: &Contents,
    filter: &Filter,
    input: &mut dyn Input,
    mut each: impl FnMut(&BranchStack) -> io::Result<()>,
) -> Result<LastBranchStats, ExportError> {
    let mut gate = BranchGate::default();
    let mut stacks: FxHashMap<u32, BranchStack> = FxHashMap::default();
    each_of(within(Reader::new(input)?, contents, filter), |record, _| {
        if let Record::LastBranch(branch) = record {
            if gate.admit(branch, &contents.processes).is_some()
                && let Some(stack) = stacks.get_mut(&branch.processor)
            {
                stack.branches.push(*branch);
            }
            return Ok(());
        }
        let Some(sample) = record.sample() else { return Ok(()) };
        let process = contents.processes.at(sample.process, sample.time);
        let source = contents.sample_counts.source_on(sample.event, sample.processor);
        let is_selected = filter.slice.selects_sample(&sample) && filter.selects(source, process);
        let stack = BranchStack { sample, process, branches: Vec::new() };
        // Other records can be between a sample and its branches, if these came with the next reply of the driver.
        if !matches!(record, Record::Sample(_)) {
            return if is_selected { each(&stack) } else { Ok(()) };
        }
        if let Some(stack) = stacks.remove(&sample.processor) {
            each(&stack)?;
        }
        if is_selected {
            gate.open(sample, process);
            stacks.insert(sample.processor, stack);
        }
        Ok(())
    })?;
    let mut rest: Vec<BranchStack> = stacks.into_values().collect();
    rest.sort_by_key(|stack| stack.sample.processor);
    rest.iter().try_for_each(each)?;
    Ok(gate.stats())
}
