//! The profile sources of the Pentium interface (SDM Vol. 3B, "Performance Monitoring Events for Pentium Processors"),
//! under the numbers and names of WDM.H. Either counter can count all of them.
//!
//! Cycles are not among them: a counter can count the clocks for which an event lasts, but no event always lasts.

use x86_defs::intel::pentium::CesrHalf;

use crate::source::{ProfileSource, Source};

const fn row(source: u64, name: &'static str, event_select: u8) -> ProfileSource {
    let select = CesrHalf::new().with_event_select(event_select).with_user(true).with_kernel(true).into_bits();
    ProfileSource { source: Source(source), name, select: select as u64 }
}

/// The sources in ascending order of KPROFILE_SOURCE; the select is counter 0's half of CESR.
pub const SOURCES: [ProfileSource; 8] = [
    ProfileSource { source: Source::TIME, name: "Time", select: 0 },
    row(0x02, "TotalIssues", 0x16),        // INSTRUCTIONS_EXECUTED
    row(0x06, "BranchInstructions", 0x12), // BRANCHES
    row(0x08, "DcacheMisses", 0x29),       // DATA_READ_MISS_OR_WRITE_MISS
    row(0x09, "IcacheMisses", 0x0E),       // CODE_CACHE_MISS
    row(0x0D, "FpInstructions", 0x22),     // FLOPS
    row(0x14, "IcacheIssues", 0x0C),       // CODE_READ
    row(0x15, "DcacheAccesses", 0x28),     // DATA_READ_OR_WRITE
];
