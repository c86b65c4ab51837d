//! The allocated pool.

use crate::fault_injection::Countdown;
use std::{alloc::Layout, collections::BTreeMap};

/// The blocks that drivers allocated.
#[derive(Default)]
pub struct Pool {
    /// The allocated blocks by address.
    pub blocks: BTreeMap<usize, Block>,
    /// The number of allocations since the lab started.
    pub total_allocations: u64,
    pub fail: Countdown,
}

/// An allocated block.
pub struct Block {
    pub layout: Layout,
    pub tag: u32,
    pub paged: bool,
    /// The NUMA node that was asked for.
    pub node: Option<u32>,
}
