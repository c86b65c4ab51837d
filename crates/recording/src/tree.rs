//! The call stacks of a recording as a tree, and the blocks with its nodes.

use rustc_hash::FxHashMap;
use zstd::bulk::Decompressor;

use crate::column::{Columns, put, unzigzag, zigzag};
use crate::error::BlockError;
use crate::frame::{MAX_NODES, MAX_STACK_COLUMNS, StacksHead};
use crate::stack::{CallStack, FIRST_NODE, SampleStack, StackId};

/// Number of nodes from which on a writer forgets those that it has written. Their table then has 26 MiB.
pub const NODE_LIMIT: usize = (1 << 20) / 8 * 7;

/// A caller in a [`StackTree`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StackNode {
    /// The next caller outward, or [what is beyond](crate::StackEnd) the outermost one.
    pub parent: StackId,
    /// Return address.
    pub address: u64,
}

/// Nodes of a tree that are in one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackNodes {
    /// The first of the nodes; the others follow it.
    pub first: StackId,
    /// The nodes. Parents are before their children.
    pub nodes: Vec<StackNode>,
}

/// The call stacks of a recording. Stacks with the same outer callers share their nodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackTree {
    nodes: Vec<StackNode>,
}

impl StackTree {
    /// Adds the nodes of a block. Blocks are added in their order; one that does not follow the last one is left out.
    pub fn add(&mut self, block: &StackNodes) {
        if block.first.node() == Some(self.nodes.len()) {
            self.nodes.extend_from_slice(&block.nodes);
        }
    }

    /// Returns all nodes, the first of which has the lowest number.
    #[must_use]
    pub fn nodes(&self) -> &[StackNode] {
        &self.nodes
    }

    /// Returns the innermost caller of a stack; `None` if it has none.
    #[must_use]
    pub fn node(&self, stack: StackId) -> Option<StackNode> {
        self.nodes.get(stack.node()?).copied()
    }

    /// Returns the callers of a stack, from the innermost to the outermost.
    pub fn callers(&self, stack: StackId) -> impl Iterator<Item = StackNode> {
        let mut next = stack;
        std::iter::from_fn(move || {
            let node = self.node(next)?;
            // A parent has a lower number, so that the stack ends.
            next = if node.parent < next { node.parent } else { StackId::NOT_RECORDED };
            Some(node)
        })
    }

    /// Returns a stack by its number.
    #[must_use]
    pub fn stack(&self, stack: StackId) -> SampleStack {
        if let Some(reason) = stack.missing() {
            return SampleStack::Missing(reason);
        }
        let mut outermost = stack;
        let each = self.callers(stack).map(|StackNode { parent, address }| {
            outermost = parent;
            address
        });
        let callers = each.collect();
        outermost.end().map_or(SampleStack::NotRecorded, |end| SampleStack::Stack(CallStack { callers, end }))
    }
}

/// Numbers the call stacks of a recording that is being written.
#[derive(Debug)]
pub struct Interner {
    /// Numbers of nodes by parent and address.
    numbers: FxHashMap<(u32, u64), u32>,
    limit: usize,
    /// Number of the first node that is not written yet.
    first: u32,
    /// Parents and addresses of the nodes that are not written yet.
    unwritten: Vec<(u32, u64)>,
    columns: Vec<u8>,
}

impl Interner {
    pub fn new(limit: usize) -> Self {
        let (numbers, unwritten, columns) = Default::default();
        Self { numbers, limit: limit.max(1), first: FIRST_NODE, unwritten, columns }
    }

    /// Forgets all nodes and returns their memory; the numbering begins anew.
    pub fn forget(&mut self) {
        *self = Self::new(self.limit);
    }

    /// Returns the number of a stack. `None` if it has new nodes and there are too many already. A stack is never
    /// divided, so that it can exceed the limit.
    pub fn number_of(&mut self, stack: &SampleStack) -> Option<u32> {
        let CallStack { callers, end } = match stack {
            SampleStack::NotRecorded => return Some(StackId::NOT_RECORDED.number()),
            SampleStack::Missing(reason) => return Some(*reason as u32),
            SampleStack::Stack(stack) => stack,
        };
        let is_full = self.numbers.len() >= self.limit;
        let mut parent = *end as u32;
        for address in callers.iter().rev() {
            let node = (parent, *address);
            parent = match self.numbers.get(&node) {
                Some(number) => *number,
                None if is_full => return None,
                None => {
                    let number = self.next();
                    self.numbers.insert(node, number);
                    self.unwritten.push(node);
                    number
                }
            };
        }
        Some(parent)
    }

    fn next(&self) -> u32 {
        // More nodes than this do not fit into memory.
        u32::try_from(self.numbers.len()).unwrap_or(u32::MAX).saturating_add(FIRST_NODE)
    }

    /// Returns the start of a block with nodes that are not written yet, and its columns; `None` if all are written.
    pub fn next_block(&mut self) -> Option<(StacksHead, &[u8])> {
        let count = self.unwritten.len().min(MAX_NODES);
        let first = self.first;
        let next = self.first + u32::try_from(count).ok().filter(|count| *count > 0)?;
        let Self { unwritten, columns, .. } = self;
        columns.clear();
        let nodes = unwritten.get(..count).unwrap_or_default();
        let distances = nodes.iter().zip(first..).map(|((parent, _), number)| (number - parent).into());
        put(columns, distances, &mut Vec::with_capacity(count));
        let mut previous = 0;
        let differences = nodes.iter().map(|(_, address)| {
            let difference = zigzag(address.wrapping_sub(previous));
            previous = *address;
            difference
        });
        put(columns, differences, &mut Vec::with_capacity(count));
        unwritten.drain(..count);
        self.first = next;
        let length = u32::try_from(self.columns.len()).unwrap_or(u32::MAX);
        Some((StacksHead::new([first, next - first, length]), &self.columns))
    }
}

/// Which numbers of stacks exist at a place in a recording, and how they become those of the whole recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// Difference between a number in the whole recording and the one in the file.
    base: u32,
    /// The next number in the file.
    next: u32,
}

impl Default for Numbers {
    fn default() -> Self {
        Self { base: 0, next: FIRST_NODE }
    }
}

impl Numbers {
    /// Begins the numbering anew.
    pub fn restart(&mut self) {
        self.base += self.next - FIRST_NODE;
        self.next = FIRST_NODE;
    }

    /// Counts the nodes of a block.
    pub fn count(&mut self, head: &StacksHead) -> Result<(), BlockError> {
        let StacksHead { first, nodes, columns, .. } = *head;
        if nodes == 0 || nodes as usize > MAX_NODES || columns as usize > MAX_STACK_COLUMNS {
            return Err(BlockError::StacksHead);
        }
        if first == FIRST_NODE {
            self.restart();
        }
        if first != self.next {
            return Err(BlockError::StackOrder { expected: self.next, found: first });
        }
        let next = first.checked_add(nodes).filter(|next| next.checked_add(self.base).is_some());
        self.next = next.ok_or(BlockError::StacksHead)?;
        Ok(())
    }

    /// Returns the number in the whole recording.
    pub fn global(self, number: u32) -> Result<StackId, BlockError> {
        if StackId::is_common(number) {
            return Ok(StackId::new(number));
        }
        if !(FIRST_NODE..self.next).contains(&number) {
            return Err(BlockError::UnknownStack(number));
        }
        Ok(StackId::new(self.base + number))
    }

    /// Decodes the columns of the block that was just counted.
    pub fn decode(self, head: &StacksHead, frame: &[u8]) -> Result<StackNodes, BlockError> {
        let [count, length] = [head.nodes, head.columns].map(|number| number as usize);
        let decompressed = Decompressor::new().and_then(|mut one| one.decompress(frame, length));
        let decompressed = decompressed.map_err(BlockError::Compression)?;
        let mut columns = Columns(&decompressed);
        let distances: Vec<u32> = columns.take(count)?;
        let differences: Vec<u64> = columns.take(count)?;
        if !columns.0.is_empty() || decompressed.len() != length {
            return Err(BlockError::Stacks);
        }
        let mut address = 0_u64;
        let each = distances.into_iter().zip(differences).zip(head.first..);
        let node = |((distance, difference), number): ((u32, u64), u32)| {
            address = address.wrapping_add(unzigzag(difference));
            let parent = number.checked_sub(distance).filter(|_| distance > 0).ok_or(BlockError::Stacks)?;
            if parent < FIRST_NODE && StackId::new(parent).end().is_none() {
                return Err(BlockError::Stacks);
            }
            Ok(StackNode { parent: self.global(parent)?, address })
        };
        let nodes = each.map(node).collect::<Result<_, _>>()?;
        Ok(StackNodes { first: self.global(head.first)?, nodes })
    }
}
