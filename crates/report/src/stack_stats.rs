//! How many samples have call stacks, and why the others have none.

use std::ops::AddAssign;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use recording::{MissingStack, StackEnd, StackId, StackNodes};

/// Numbers of what is beyond the outermost caller, and of reasons: 0 is [`StackId::NOT_RECORDED`].
const OUTCOMES: usize = MissingStack::Overflow as usize + 1;

/// Samples by what is known about their call stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StackStats {
    samples: [u64; OUTCOMES],
}

impl AddAssign for StackStats {
    fn add_assign(&mut self, other: Self) {
        for (one, other) in self.samples.iter_mut().zip(other.samples) {
            *one += other;
        }
    }
}

impl StackStats {
    fn of(&self, outcome: StackId) -> u64 {
        self.samples.get(outcome.number() as usize).copied().unwrap_or_default()
    }

    /// Adds samples with this [`outcome`].
    pub(crate) fn add(&mut self, outcome: StackId, samples: u64) {
        if let Some(one) = self.samples.get_mut(outcome.number() as usize) {
            *one += samples;
        }
    }

    /// Returns whether call stacks were recorded.
    #[must_use]
    pub fn are_recorded(&self) -> bool {
        self.samples() > self.not_recorded()
    }

    /// Returns the number of all samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.samples.iter().sum()
    }

    /// Returns the number of samples with this end of their stack.
    #[must_use]
    pub fn ended(&self, end: StackEnd) -> u64 {
        self.of(end.into())
    }

    /// Returns the number of samples without a stack for this reason.
    #[must_use]
    pub fn without(&self, reason: MissingStack) -> u64 {
        self.of(reason.into())
    }

    /// Returns the number of samples in blocks without call stacks.
    #[must_use]
    pub fn not_recorded(&self) -> u64 {
        self.of(StackId::NOT_RECORDED)
    }

    /// Returns the number of samples with a complete stack.
    #[must_use]
    pub fn complete(&self) -> u64 {
        self.ended(StackEnd::Complete)
    }

    /// Returns the number of samples of which outer callers are missing.
    #[must_use]
    pub fn truncated(&self) -> u64 {
        self.ended(StackEnd::Truncated) + self.ended(StackEnd::UserLost)
    }

    /// Returns the number of samples without a stack.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.samples() - self.complete() - self.truncated()
    }
}

/// What is beyond the outermost caller of each stack: a byte for each node of the tree.
#[derive(Debug, Default)]
pub(crate) struct StackEnds(RwLock<Vec<u8>>);

impl StackEnds {
    /// Adds the nodes of a block, which follow those before.
    pub fn add(&self, block: &StackNodes) {
        let mut ends = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for node in &block.nodes {
            let end = outcome(&ends, node.parent).number();
            ends.push(u8::try_from(end).unwrap_or_default());
        }
    }

    /// Returns the ends. Nodes can be added when they are dropped.
    pub fn read(&self) -> RwLockReadGuard<'_, Vec<u8>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what is beyond the outermost caller of a stack, or why there is none.
pub(crate) fn outcome(ends: &[u8], stack: StackId) -> StackId {
    let Some(node) = stack.node() else { return stack };
    let end = ends.get(node).copied().unwrap_or_default();
    StackId::from_number(end.into()).unwrap_or_default()
}
