//! The northbridge of AMD's processors up to family 14h. All cores of a node count its events with the same counters
//! (BKDG for family 10h, "Performance Monitor Events").

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

/// Number of counters of each core, and of the northbridge.
pub(super) const LEGACY_COUNT: usize = 4;

/// Returns whether an event is one of the northbridge: bits 7:5 of its number are set.
pub(crate) fn has(event: u16) -> bool {
    event & 0xE0 == 0xE0
}

/// The northbridge of a node, as one of its cores sees it.
pub(crate) struct Northbridge {
    core: usize,
    node: Arc<Node>,
}

#[derive(Default)]
struct Node {
    /// Number of cores besides the first.
    others: AtomicUsize,
    /// For each counter, a bit for each core that selects an event of the northbridge.
    selecting: [AtomicU64; LEGACY_COUNT],
}

impl Northbridge {
    /// Creates the northbridge of the first core of a node.
    pub(crate) fn new() -> Self {
        Self { core: 0, node: Arc::default() }
    }

    /// Returns the northbridge of the next core of the node.
    pub(crate) fn of_next_core(&self) -> Self {
        let core = self.node.others.fetch_add(1, Ordering::SeqCst) + 1;
        Self { core, node: Arc::clone(&self.node) }
    }

    /// Notes whether this core selects an event of the northbridge in a counter.
    pub(crate) fn note(&self, counter: usize, selects: bool) {
        let Some(cores) = self.node.selecting.get(counter) else { return };
        let bit = 1 << self.core;
        if selects {
            cores.fetch_or(bit, Ordering::SeqCst);
        } else {
            cores.fetch_and(!bit, Ordering::SeqCst);
        }
    }

    /// Returns the number of cores that select an event of the northbridge in a counter.
    pub(crate) fn cores(&self, counter: usize) -> u32 {
        self.node.selecting.get(counter).map_or(0, |cores| cores.load(Ordering::SeqCst).count_ones())
    }
}
