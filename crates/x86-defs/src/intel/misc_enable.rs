//! IA32_MISC_ENABLE.

use bitfield_struct::bitfield;

/// IA32_MISC_ENABLE: [`MiscEnable`] (SDM Vol. 4, "Architectural MSRs").
pub const IA32_MISC_ENABLE: u32 = 0x1A0;

/// IA32_MISC_ENABLE (SDM Vol. 4, "Architectural MSRs"). The bits that performance monitoring uses are read-only.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct MiscEnable {
    #[bits(7)]
    _other: u8,
    /// Performance Monitoring Available; read-only.
    pub perfmon_available: bool,
    #[bits(3)]
    _other: u8,
    /// Branch Trace Storage Unavailable; read-only.
    pub bts_unavailable: bool,
    /// Processor Event Based Sampling (PEBS) Unavailable; read-only.
    pub pebs_unavailable: bool,
    #[bits(51)]
    _other: u64,
}
