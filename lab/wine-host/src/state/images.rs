//! The loaded drivers.

use std::{collections::BTreeSet, ops::Range};

/// A loaded driver.
pub struct LoadedImage {
    pub name: String,
    pub addresses: Range<usize>,
    /// The addresses of its original cpuid instructions.
    pub cpuids: BTreeSet<usize>,
    /// The addresses of the original decrements of its loops.
    pub loops: BTreeSet<usize>,
    /// Whether it imports the function that reserves counters.
    pub can_reserve: bool,
    /// The addresses of the instructions whose faults it handles itself.
    pub guarded: Vec<Range<usize>>,
    /// The addresses of sections that Windows pages out, or discards after the driver has started.
    pub pageable: Vec<Range<usize>>,
}
