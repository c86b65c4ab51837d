//! Last branches as call stacks.
//!
//! The callers of a sample are then the ends of its last branches, from the newest to the oldest: the target of the
//! newest, the branch instruction, the target of the branch before it, and so on. Tables and trees of call stacks show
//! them as they show callers.

use recording::{StackEnd, StackId, StackNode, StackNodes, StackTree};
use rustc_hash::FxHashMap;

use crate::filter::Filter;
use crate::input::Input;
use crate::last_branches::{BranchStack, LastBranchStats, for_each_sample};
use crate::locations::{LocationAdder, Locations, SampleLocation};
use crate::read::{Contents, ExportError};
use crate::sums::SampleWeight;

/// Maximum number of branches of a loop that is found: half of the most that a processor keeps. A damaged recording can
/// have more behind a sample, and each length takes time for each branch.
const MAX_LOOP: usize = 16;

/// Source and target of a branch.
type Branch = (u64, u64);

/// The branch histories of samples as stacks. Those with the same older branches share their nodes.
#[derive(Default)]
struct Histories {
    numbers: FxHashMap<StackNode, StackId>,
    nodes: Vec<StackNode>,
}

impl Histories {
    /// Returns the stack of branches, of which the newest is the first.
    fn stack_of(&mut self, branches: &[Branch]) -> StackId {
        let ends = branches.iter().rev().flat_map(|(from, to)| [*from, *to]);
        let stack = ends.fold(StackEnd::Complete.into(), |parent, address| {
            let Self { numbers, nodes } = self;
            let node = StackNode { parent, address };
            *numbers.entry(node).or_insert_with(|| {
                nodes.push(node);
                // More nodes than a tree can have do not fit into memory.
                StackId::of_node(nodes.len() - 1).unwrap_or_default()
            })
        });
        if branches.is_empty() { StackId::NOT_RECORDED } else { stack }
    }

    fn tree(self) -> StackTree {
        let mut tree = StackTree::default();
        tree.add(&StackNodes { first: StackId::of_node(0).unwrap_or_default(), nodes: self.nodes });
        tree
    }
}

/// Leaves out what repeats the branches directly before it, as the executions of a loop do: of those the newest stays.
fn without_repetitions(branches: impl Iterator<Item = Branch>) -> Vec<Branch> {
    let mut kept: Vec<Branch> = Vec::new();
    for branch in branches {
        kept.push(branch);
        let is_repeated = |length: &usize| {
            let (rest, last) = kept.split_at(kept.len() - length);
            rest.ends_with(last)
        };
        if let Some(length) = (1..=MAX_LOOP.min(kept.len() / 2)).find(is_repeated) {
            kept.truncate(kept.len() - length);
        }
    }
    kept
}

impl Contents {
    /// Replaces the call stacks of the samples that `filter` selects by their last branches, and leaves out the
    /// samples that it does not select by source, process, processor, thread and time. Successive executions of a loop
    /// are one. `input` is the recording from which the contents were read. Memory grows with the number of distinct
    /// histories.
    ///
    /// # Errors
    /// If the recording cannot be read again.
    pub fn use_branch_history(
        &mut self,
        filter: &Filter,
        input: &mut dyn Input,
    ) -> Result<LastBranchStats, ExportError> {
        let (mut histories, mut locations) = (Histories::default(), Locations::default());
        let shared = locations.shared();
        let mut adder = LocationAdder::new(&shared);
        let counts = &self.sample_counts;
        let stats = for_each_sample(self, filter, input, |BranchStack { sample, process, branches }| {
            let branches = without_repetitions(branches.iter().map(|branch| (branch.from, branch.to)));
            let (core_type, stack) = (counts.source_of(sample).core_type, histories.stack_of(&branches));
            let location = SampleLocation { core_type, stack, ..SampleLocation::of(sample, *process, counts.detail()) };
            adder.add(location, SampleWeight { samples: 1, events: sample.events });
            Ok(())
        })?;
        adder.finish();
        drop(shared);
        self.sample_counts.set_locations(locations);
        self.stacks = histories.tree();
        self.has_branch_history = true;
        Ok(stats)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn executions_of_a_loop_are_one() {
        let of = |text: &str| {
            let kept = without_repetitions(text.bytes().map(|byte| (byte.into(), 0)));
            kept.into_iter().map(|(from, _)| char::from(u8::try_from(from).unwrap())).collect::<String>()
        };
        for (branches, kept) in
            [("", ""), ("aaaaaa", "a"), ("abababx", "abx"), ("aabaabc", "abc"), ("xababay", "xabay"), ("abcd", "abcd")]
        {
            assert_eq!(of(branches), kept, "{branches}");
        }
    }

    /// A processor keeps 32 branches at most, but the reader accepts any number.
    #[test]
    fn the_time_grows_with_the_number_of_branches() {
        let branches = || (0..1_u64 << 20).map(|from| (from, 0));
        assert!(without_repetitions(branches()).into_iter().eq(branches()));
        let longest = (0..2).flat_map(|_| (0..16).map(|from| (from, 0)));
        assert_eq!(without_repetitions(longest).len(), 16, "a loop of half the branches");
    }

    proptest! {
        /// What is left has no repetition, begins with the newest branch and ends with the oldest.
        #[test]
        fn nothing_that_is_left_repeats_what_is_before_it(
            branches in prop::collection::vec((0_u64..3, 0_u64..2), 1..33),
        ) {
            let kept = without_repetitions(branches.iter().copied());
            prop_assert_eq!((kept.first(), kept.last()), (branches.first(), branches.last()));
            for begin in 0..kept.len() {
                for length in 1..=(kept.len() - begin) / 2 {
                    let (one, next) = (&kept[begin..begin + length], &kept[begin + length..begin + 2 * length]);
                    prop_assert_ne!(one, next);
                }
            }
        }

        #[test]
        fn a_history_is_the_stack_of_its_ends(
            all in prop::collection::vec(prop::collection::vec((0_u64..3, 0_u64..3), 0..6), 1..12),
        ) {
            let mut histories = Histories::default();
            let stacks: Vec<StackId> = all.iter().map(|branches| histories.stack_of(branches)).collect();
            let tree = histories.tree();
            for (branches, stack) in all.iter().zip(stacks) {
                let ends: Vec<u64> = tree.callers(stack).map(|node| node.address).collect();
                let wanted: Vec<u64> = branches.iter().flat_map(|(from, to)| [*to, *from]).collect();
                prop_assert_eq!(ends, wanted);
            }
        }
    }
}
