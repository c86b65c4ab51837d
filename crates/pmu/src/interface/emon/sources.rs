//! The profile sources of the Emon interface (HAL Emon interface, section 2.2): every row under its HAL name and in its
//! order.

use crate::source::{ProfileSource, Source, row};

/// The sources in ascending order of KPROFILE_SOURCE: number, name, select.
pub const SOURCES: [ProfileSource; 13] = [
    row(0x00, "Time", 0x0003_003C),
    row(0x02, "TotalIssues", 0x0003_00C0),
    row(0x06, "BranchInstructions", 0x0003_00C4),
    row(0x0A, "CacheMisses", 0x0003_412E),
    row(0x0B, "BranchMispredictions", 0x0003_00C5),
    row(0x13, "TotalCycles", 0x0003_003C),
    row(0x19, "UnhaltedCoreCycles", 0x0003_003C),
    row(0x1A, "InstructionRetired", 0x0003_00C0),
    row(0x1B, "UnhaltedReferenceCycles", 0x0003_013C),
    row(0x1C, "LLCReference", 0x0003_4F2E),
    row(0x1D, "LLCMisses", 0x0003_412E),
    row(0x1E, "BranchInstructionRetired", 0x0003_00C4),
    row(0x1F, "BranchMispredictsRetired", 0x0003_00C5),
];

/// Returns the bit of CPUID leaf 0xA EBX that is clear if the event of an entry is available.
#[must_use]
pub fn ebx_bit(source: &ProfileSource) -> Option<u8> {
    if source.source == Source::TIME || source.source.raw().is_some() { None } else { architectural(source.select) }
}

/// Returns that bit for an event select register with an architectural event (SDM Vol. 2A, CPUID leaf 0xA; Vol. 3B,
/// 21.2.1.2).
pub(super) const fn architectural(select: u64) -> Option<u8> {
    match select {
        0x0003_003C => Some(0),
        0x0003_00C0 => Some(1),
        0x0003_013C => Some(2),
        0x0003_4F2E => Some(3),
        0x0003_412E => Some(4),
        0x0003_00C4 => Some(5),
        0x0003_00C5 => Some(6),
        _ => None,
    }
}
