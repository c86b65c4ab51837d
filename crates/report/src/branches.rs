//! Counts branches by source and target.

use std::cmp::Reverse;
use std::ops::AddAssign;

use protocol::{ALL_EVENTS, BranchRecord, Mode, Prediction, Record, SampleRecord, UNKNOWN, is_kernel_address};
use recording::StackId;
use rustc_hash::FxHashMap;

use crate::locations::SampleLocation;

/// A branch. BTS records have no process, so equal user addresses of different processes are one branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Branch {
    /// Whether the source is in kernel mode.
    pub kernel: bool,
    /// Address of the branch instruction.
    pub from: u64,
    /// Address of the target.
    pub to: u64,
}

impl Branch {
    fn of(record: &BranchRecord) -> Self {
        Self { kernel: record.mode == Mode::Kernel, from: record.from, to: record.to }
    }

    /// Returns the location of the branch instruction.
    #[must_use]
    pub fn source(&self) -> SampleLocation {
        Self::location(self.kernel, self.from)
    }

    /// Returns the location of the target. It is in the kernel if the address is in the upper half.
    #[must_use]
    pub fn target(&self) -> SampleLocation {
        Self::location(is_kernel_address(self.to), self.to)
    }

    fn location(kernel: bool, ip: u64) -> SampleLocation {
        SampleLocation {
            stack: StackId::NOT_RECORDED,
            event: ALL_EVENTS,
            core_type: 0,
            process: UNKNOWN.into(),
            thread: 0,
            processor: 0,
            parallelism: 0,
            kernel,
            ip,
        }
    }
}

/// Execution counts of a branch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BranchCount {
    /// Number of times that the branch was taken.
    pub count: u64,
    /// Number of times that the processor reported it as predicted. Many processors never do.
    pub predicted: u64,
}

impl AddAssign for BranchCount {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.predicted += other.predicted;
    }
}

/// Execution counts by branch. Memory grows with the number of distinct branches, not with time.
#[derive(Debug, Clone, Default)]
pub struct BranchCounts {
    taken: FxHashMap<Branch, BranchCount>,
    total: BranchCount,
}

impl BranchCounts {
    /// Counts the branches among `records`.
    pub fn record(&mut self, records: &[SampleRecord]) {
        for record in records {
            if let Ok(Record::Branch(branch)) = record.parse() {
                let predicted = u64::from(branch.prediction == Prediction::Predicted);
                let once = BranchCount { count: 1, predicted };
                *self.taken.entry(Branch::of(&branch)).or_default() += once;
                self.total += once;
            }
        }
    }

    /// Returns the sum over all branches.
    #[must_use]
    pub fn total(&self) -> BranchCount {
        self.total
    }

    /// Returns the number of distinct branches.
    #[must_use]
    pub fn distinct(&self) -> usize {
        self.taken.len()
    }

    /// Returns the `number` most frequent branches in descending order; equal counts are ordered by address.
    #[must_use]
    pub fn top(&self, number: usize) -> Vec<(Branch, BranchCount)> {
        let mut all: Vec<(Branch, BranchCount)> = self.taken.iter().map(|(branch, taken)| (*branch, *taken)).collect();
        all.sort_unstable_by_key(|(branch, taken)| (Reverse(taken.count), *branch));
        all.truncate(number);
        all
    }
}
