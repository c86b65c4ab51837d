//! Branches counted by where they are and where they went.

use std::cmp::Reverse;
use std::ops::AddAssign;

use protocol::{BRANCHES, Sample, SampleKind, UNKNOWN, modes};
use rustc_hash::FxHashMap;

use crate::tally::Place;

/// A branch of the code. The processor writes down no process with it, so that those of one user address are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Branch {
    /// Whether it is in kernel mode.
    pub kernel: bool,
    /// Its address.
    pub from: u64,
    /// Where it went.
    pub to: u64,
}

impl Branch {
    fn of(sample: &Sample) -> Self {
        Self { kernel: u32::from(sample.modes) == modes::KERNEL, from: sample.ip, to: sample.mark }
    }

    /// Where it is.
    #[must_use]
    pub fn source(&self) -> Place {
        Self::place(self.kernel, self.from)
    }

    /// Where it went: into the kernel where the address is one of its half.
    #[must_use]
    pub fn target(&self) -> Place {
        Self::place(is_kernels(self.to), self.to)
    }

    fn place(kernel: bool, ip: u64) -> Place {
        Place { source: BRANCHES, process: UNKNOWN, thread: 0, processor: 0, kernel, ip }
    }
}

/// Whether the address lies in the upper half, which is the kernel's.
fn is_kernels(address: u64) -> bool {
    address >> 63 == 1
}

/// How often a branch was taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Taken {
    /// How often.
    pub count: u64,
    /// As often the processor told that it had predicted it. Many processors never do.
    pub predicted: u64,
}

impl AddAssign for Taken {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.predicted += other.predicted;
    }
}

/// Branches, each with how often it was taken. Memory grows with the branches of the code, not with time.
#[derive(Debug, Clone, Default)]
pub struct Branches {
    taken: FxHashMap<Branch, Taken>,
    total: Taken,
}

impl Branches {
    /// Counts the branches among `samples`.
    pub fn add(&mut self, samples: &[Sample]) {
        for sample in samples.iter().filter(|sample| sample.kind == SampleKind::Branch as u16) {
            let once = Taken { count: 1, predicted: sample.interval.min(1).into() };
            *self.taken.entry(Branch::of(sample)).or_default() += once;
            self.total += once;
        }
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> Taken {
        self.total
    }

    /// How many different ones there are.
    #[must_use]
    pub fn different(&self) -> usize {
        self.taken.len()
    }

    /// The `number` that were taken most, the most frequent first; equals by their addresses.
    #[must_use]
    pub fn most(&self, number: usize) -> Vec<(Branch, Taken)> {
        let mut all: Vec<(Branch, Taken)> = self.taken.iter().map(|(branch, taken)| (*branch, *taken)).collect();
        all.sort_unstable_by_key(|(branch, taken)| (Reverse(taken.count), *branch));
        all.truncate(number);
        all
    }
}
