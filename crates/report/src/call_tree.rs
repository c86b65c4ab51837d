//! Call stacks of many samples as one tree of functions.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::call_stacks::{CallStacks, Function};
use crate::filter::Filter;
use crate::numbering::Numbering;
use crate::read::Contents;
use crate::sampled_sources::SampledSource;
use crate::sums::SampleWeight;
use crate::symbol_index::SymbolIndex;

/// Direction of the calls in a [`CallTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOrder {
    /// From callers to the functions that they call.
    Caller,
    /// From functions to their callers.
    Callee,
}

/// A function in a [`CallTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallNode {
    /// The node above; `None` at the top.
    pub parent: Option<usize>,
    /// The function.
    pub function: Function,
    /// Samples of which the path ends here.
    pub own: SampleWeight,
    /// Samples of which the path ends here or below.
    pub total: SampleWeight,
}

#[derive(Debug, Clone, Copy)]
struct StoredNode {
    parent: u32,
    function: u32,
    own: SampleWeight,
    total: SampleWeight,
}

/// The node above those at the top.
const ROOT: u32 = u32::MAX;

/// Call stacks as a tree of functions, with the samples of each.
#[derive(Debug, Default)]
pub struct CallTree {
    functions: Numbering<Function>,
    nodes: Vec<StoredNode>,
    /// Nodes by parent and function.
    numbers: FxHashMap<(u32, u32), u32>,
    all: SampleWeight,
}

impl CallTree {
    /// Returns the tree of the samples of `source` that `filter` selects, from processes over the outermost functions
    /// to the sampled ones. A stack that is not complete has a [note](crate::StackNote) below the process. The ends of
    /// a [branch history](Contents::use_branch_history) follow the sampled function, from the newest to the oldest.
    #[must_use]
    pub fn new(
        contents: &Contents,
        symbol_index: &SymbolIndex,
        source: impl Into<SampledSource>,
        filter: &Filter,
    ) -> Self {
        let source = source.into();
        let mut tree = Self::default();
        let mut stacks = CallStacks::new(contents, symbol_index);
        let is_selected = |location: &_| filter.selects_location(location, symbol_index);
        for (location, weight) in contents.sample_counts.locations() {
            if location.sampled_source() == source && is_selected(&location) {
                let frames = stacks.frames(&location);
                let own = frames.iter().position(|frame| frame.function.is_branch_end()).unwrap_or(frames.len());
                let (functions, history) = frames.split_at(own);
                let path = functions.iter().rev().chain(history).map(|frame| frame.function);
                tree.add([Function::process(location.process)].into_iter().chain(path), weight);
            }
        }
        tree
    }

    /// Adds samples with this path from the top.
    pub fn add(&mut self, path: impl Iterator<Item = Function>, weight: SampleWeight) {
        self.all += weight;
        let mut last = ROOT;
        for function in path {
            let function = self.functions.number_of(function);
            let Self { nodes, numbers, .. } = self;
            let number = *numbers.entry((last, function)).or_insert_with(|| {
                let (own, total) = Default::default();
                nodes.push(StoredNode { parent: last, function, own, total });
                // More nodes than this do not fit into memory.
                u32::try_from(nodes.len() - 1).unwrap_or(ROOT)
            });
            if let Some(node) = nodes.get_mut(number as usize) {
                node.total += weight;
            }
            last = number;
        }
        if let Some(node) = self.nodes.get_mut(last as usize) {
            node.own += weight;
        }
    }

    /// Returns the samples of all paths.
    #[must_use]
    pub fn all(&self) -> SampleWeight {
        self.all
    }

    /// Returns the node with this number.
    #[must_use]
    pub fn node(&self, number: usize) -> Option<CallNode> {
        let StoredNode { parent, function, own, total } = *self.nodes.get(number)?;
        let function = *self.functions.get(function)?;
        Some(CallNode { parent: (parent != ROOT).then_some(parent as usize), function, own, total })
    }

    /// Returns all nodes in the order of their numbers, parents before their children. The order of siblings depends on
    /// the order in which samples were added.
    pub fn nodes(&self) -> impl Iterator<Item = CallNode> {
        (0..self.nodes.len()).filter_map(|number| self.node(number))
    }

    /// Returns the functions from the top to a node.
    #[must_use]
    pub fn path(&self, number: usize) -> Vec<Function> {
        let mut path = Vec::new();
        let mut next = self.node(number);
        while let Some(node) = next {
            path.push(node.function);
            next = node.parent.and_then(|parent| self.node(parent));
        }
        path.reverse();
        path
    }

    /// Returns for each node the events of the paths that end there, by number. A node that `is_shown` rejects has
    /// none: its events are those of the nearest node above that it accepts. Nodes at the top are always shown.
    #[must_use]
    pub fn shown_events(&self, is_shown: impl Fn(usize, CallNode) -> bool) -> Vec<u64> {
        let mut events: Vec<u64> = self.nodes.iter().map(|node| node.own.events).collect();
        for (number, node) in self.nodes().enumerate().collect::<Vec<_>>().into_iter().rev() {
            let Some(parent) = node.parent.filter(|_| !is_shown(number, node)) else { continue };
            let moved = events.get_mut(number).map_or(0, std::mem::take);
            if let Some(above) = events.get_mut(parent) {
                *above += moved;
            }
        }
        events
    }

    /// Returns the numbers of the children of every node, and last of those at the top: in descending order of events,
    /// then by function.
    #[must_use]
    pub fn children(&self) -> Vec<Vec<usize>> {
        let mut children = vec![Vec::new(); self.nodes.len() + 1];
        for (number, node) in self.nodes.iter().enumerate() {
            let parent = children.len().saturating_sub(1).min(node.parent as usize);
            if let Some(list) = children.get_mut(parent) {
                list.push(number);
            }
        }
        for list in &mut children {
            list.sort_by_key(|number| self.node(*number).map(|node| (Reverse(node.total.events), node.function)));
        }
        children
    }
}
