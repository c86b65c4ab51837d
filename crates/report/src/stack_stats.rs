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

/// Maximum number of callers of a stack: Windows walks at most 192 frames in each of the two modes.
const MAX_CALLERS: u16 = 2 * 192;

/// What is known about a stack of the tree.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackExtent {
    /// Number of what is beyond the outermost caller.
    end: u8,
    callers: u16,
}

/// The extent of each stack of the tree.
#[derive(Debug, Default)]
pub(crate) struct StackEnds(RwLock<Vec<StackExtent>>);

impl StackEnds {
    /// Adds the nodes of a block, which follow those before.
    ///
    /// A file can claim stacks of any depth: a kilobyte has room for thousands of callers, which would cost every
    /// sample seconds and megabytes. Where a stack has more than [`MAX_CALLERS`], the outer ones are removed, as
    /// Windows does.
    pub fn add(&self, block: &mut StackNodes) {
        let mut ends = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for node in &mut block.nodes {
            let parent = extent(&ends, node.parent);
            if parent.is_some_and(|parent| parent.callers >= MAX_CALLERS) {
                node.parent = StackEnd::Truncated.into();
            }
            let callers = extent(&ends, node.parent).map_or(0, |parent| parent.callers) + 1;
            let end = u8::try_from(outcome(&ends, node.parent).number()).unwrap_or_default();
            ends.push(StackExtent { end, callers });
        }
    }

    /// Returns the extents. Nodes can be added when they are dropped.
    pub fn read(&self) -> RwLockReadGuard<'_, Vec<StackExtent>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the extent of a stack; `None` if it has no callers.
fn extent(ends: &[StackExtent], stack: StackId) -> Option<StackExtent> {
    ends.get(stack.node()?).copied()
}

/// Returns what is beyond the outermost caller of a stack, or why there is none.
pub(crate) fn outcome(ends: &[StackExtent], stack: StackId) -> StackId {
    if stack.node().is_none() {
        return stack;
    }
    let end = extent(ends, stack).map_or(0, |extent| extent.end);
    StackId::from_number(end.into()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use recording::StackNode;

    use super::*;

    #[test]
    fn a_stack_deeper_than_windows_walks_is_truncated() {
        let first = StackId::from_number(16).unwrap();
        let mut parent = StackId::from(StackEnd::Complete);
        let mut nodes = Vec::new();
        for number in 16..=16 + 2 * u32::from(MAX_CALLERS) {
            nodes.push(StackNode { parent, address: number.into() });
            parent = StackId::from_number(number).unwrap();
        }
        let before = nodes.clone();
        let mut block = StackNodes { first, nodes };
        let ends = StackEnds::default();
        ends.add(&mut block);
        let cuts = before.iter().zip(&block.nodes).enumerate().filter(|(_, (before, after))| before != after);
        let cuts: Vec<(usize, StackId)> = cuts.map(|(place, (_, after))| (place, after.parent)).collect();
        let max = usize::from(MAX_CALLERS);
        assert_eq!(cuts, [max, 2 * max].map(|place| (place, StackEnd::Truncated.into())));
        let ends = ends.read();
        let outcomes = [0, max - 1, max, 2 * max].map(|place| {
            let number = 16 + u32::try_from(place).unwrap();
            outcome(&ends, StackId::from_number(number).unwrap())
        });
        let [complete, truncated] = [StackEnd::Complete, StackEnd::Truncated].map(StackId::from);
        assert_eq!(outcomes, [complete, complete, truncated, truncated]);
    }
}
