//! Which processors are threads of a core, and which cores are in a package.

use std::collections::BTreeMap;

/// Where a processor is. Cores are numbered within their package, in the order of their first processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CorePlace {
    /// Number of the package.
    pub package: u32,
    /// Number of the core in the package.
    pub core: u32,
}

/// The place of each processor, by its number.
pub type Topology = BTreeMap<u32, CorePlace>;

pub mod relations;
