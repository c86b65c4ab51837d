//! The loaded drivers.

use crate::cpu::instruction_scan::Replaced;
use std::{collections::BTreeMap, ops::Range};

/// A loaded driver.
pub struct LoadedImage {
    pub name: String,
    pub addresses: Range<usize>,
    /// Its instructions that are replaced, by their addresses.
    pub instructions: BTreeMap<usize, Replaced>,
    /// Whether it imports the function that reserves counters.
    pub can_reserve: bool,
    /// The addresses of the instructions whose faults it handles itself.
    pub guarded: Vec<Range<usize>>,
    /// The addresses of sections that Windows pages out, or discards after the driver has started.
    pub pageable: Vec<Range<usize>>,
}
