//! Counters of the P6 family: Pentium Pro, II, III and Pentium M (SDM Vol. 3B, "Performance Monitoring (P6 Family
//! Processor)").

use bitfield_struct::bitfield;

/// PerfEvtSel0 (EVNTSEL0), first of two: [`PerfEvtSel`] (SDM Vol. 4, "MSRs in the P6 Family Processors").
pub const PERF_EVT_SEL0: u32 = 0x186;

/// PerfCtr0, first of two (SDM Vol. 4, "MSRs in the P6 Family Processors"). A write takes the lower 32 bits and extends
/// their sign.
pub const PERF_CTR0: u32 = 0xC1;

/// Counters of a processor (SDM Vol. 3B, "Performance Monitoring (P6 Family Processor)").
pub const COUNTERS: u8 = 2;

/// Width of a counter in bits (SDM Vol. 3B, "PerfCtr0 and PerfCtr1 MSRs").
pub const WIDTH: u8 = 40;

/// PerfEvtSel0 and PerfEvtSel1 (SDM Vol. 3B, "PerfEvtSel0 and PerfEvtSel1 MSRs").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PerfEvtSel {
    /// Event select.
    pub event_select: u8,
    /// Unit mask (UMASK).
    pub umask: u8,
    /// USR: count at privilege levels 1 to 3.
    pub usr: bool,
    /// OS: count at privilege level 0.
    pub os: bool,
    /// E: edge detect.
    pub edge: bool,
    /// PC: pin control.
    pub pin_control: bool,
    /// INT: APIC interrupt enable.
    pub int: bool,
    _reserved: bool,
    /// EN: enable both counters. Only in PerfEvtSel0; reserved in PerfEvtSel1.
    pub en: bool,
    /// INV: invert the counter mask.
    pub inv: bool,
    /// CMASK: counter mask.
    pub cmask: u8,
    _reserved: u32,
}
