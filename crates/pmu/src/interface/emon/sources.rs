//! The profile sources of the Emon interface (HAL Emon interface, section 2.2): every row under its HAL name and in its
//! order.

use crate::source::{ProfileSource, emon as row};

/// The sources in ascending order of KPROFILE_SOURCE: number, name, EBX bit, select.
pub const SOURCES: [ProfileSource; 13] = [
    row(0x00, "Time", None, 0x0003_003C),
    row(0x02, "TotalIssues", Some(1), 0x0003_00C0),
    row(0x06, "BranchInstructions", Some(5), 0x0003_00C4),
    row(0x0A, "CacheMisses", Some(4), 0x0003_412E),
    row(0x0B, "BranchMispredictions", Some(6), 0x0003_00C5),
    row(0x13, "TotalCycles", Some(0), 0x0003_003C),
    row(0x19, "UnhaltedCoreCycles", Some(0), 0x0003_003C),
    row(0x1A, "InstructionRetired", Some(1), 0x0003_00C0),
    row(0x1B, "UnhaltedReferenceCycles", Some(2), 0x0003_013C),
    row(0x1C, "LLCReference", Some(3), 0x0003_4F2E),
    row(0x1D, "LLCMisses", Some(4), 0x0003_412E),
    row(0x1E, "BranchInstructionRetired", Some(5), 0x0003_00C4),
    row(0x1F, "BranchMispredictsRetired", Some(6), 0x0003_00C5),
];
