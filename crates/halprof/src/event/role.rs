//! The roles of events in metrics.

/// The role of an event in a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Cycles of a running processor.
    Cycles,
    /// Instructions retired.
    Instructions,
    /// Branches retired.
    Branches,
    /// Branches mispredicted.
    BranchMisses,
    /// References to the last level cache.
    LastLevelReferences,
    /// Misses of the last level cache.
    LastLevelMisses,
    /// Accesses to the data cache.
    DataAccesses,
    /// Misses of the data cache.
    DataMisses,
    /// Fetches from the instruction cache.
    CodeFetches,
    /// Misses of the instruction cache.
    CodeMisses,
}

/// Returns the role of a source, by its HAL name: numbers from 0x19 on mean different events on different processors.
#[must_use]
pub fn of(name: &str) -> Option<Role> {
    Some(match name {
        "TotalCycles" | "UnhaltedCoreCycles" => Role::Cycles,
        "TotalIssues" | "InstructionRetired" | "FRRetiredx86Instructions" => Role::Instructions,
        "BranchInstructions" | "BranchInstructionRetired" | "FRRetiredBranches" => Role::Branches,
        "BranchMispredictions" | "BranchMispredictsRetired" | "FRRetiredBranchesMispredicted" => Role::BranchMisses,
        "LLCReference" => Role::LastLevelReferences,
        "LLCMisses" | "CacheMisses" => Role::LastLevelMisses,
        "DcacheAccesses" | "DCAccess" => Role::DataAccesses,
        "DcacheMisses" | "DCMiss" => Role::DataMisses,
        "IcacheIssues" | "ICFetch" => Role::CodeFetches,
        "IcacheMisses" | "ICMiss" => Role::CodeMisses,
        _ => return None,
    })
}
