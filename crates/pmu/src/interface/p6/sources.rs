//! The profile sources of the P6 interface (SDM Vol. 3B, "Performance Monitoring Events for P6 Family Processors"),
//! under the numbers and names of WDM.H.

use x86_defs::intel::p6::PerfEvtSel;

use crate::source::{ProfileSource, Source};

const fn row(source: u64, name: &'static str, event_select: u8) -> ProfileSource {
    let select = PerfEvtSel::new().with_event_select(event_select).with_usr(true).with_os(true);
    ProfileSource { source: Source(source), name, select: select.into_bits() }
}

/// The sources in ascending order of KPROFILE_SOURCE.
pub const SOURCES: [ProfileSource; 9] = [
    ProfileSource { source: Source::TIME, name: "Time", select: 0 },
    row(0x02, "TotalIssues", 0xC0),          // INST_RETIRED
    row(0x06, "BranchInstructions", 0xC4),   // BR_INST_RETIRED
    row(0x08, "DcacheMisses", 0x45),         // DCU_LINES_IN
    row(0x0A, "CacheMisses", 0x24),          // L2_LINES_IN
    row(0x0B, "BranchMispredictions", 0xC5), // BR_MISS_PRED_RETIRED
    row(0x13, "TotalCycles", 0x79),          // CPU_CLK_UNHALTED
    row(0x15, "DcacheAccesses", 0x43),       // DATA_MEM_REFS
    row(0x19, "UnhaltedCoreCycles", 0x79),   // CPU_CLK_UNHALTED, under Emon's name
];
