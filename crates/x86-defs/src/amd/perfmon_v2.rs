//! Global registers of PerfMonV2 (APM Vol. 2 13.2.1; PPR for family 19h).

use bitfield_struct::bitfield;

/// PerfCntrGlobalStatus, MSRC000_0300: [`GlobalStatus`]; read-only.
pub const PERF_CNTR_GLOBAL_STATUS: u32 = 0xC000_0300;

/// PerfCntrGlobalCtl, MSRC000_0301: [`GlobalCtl`]. After reset every counter is enabled.
pub const PERF_CNTR_GLOBAL_CTL: u32 = 0xC000_0301;

/// PerfCntrGlobalStatusClr, MSRC000_0302: a written 1 clears the same bit of [`GlobalStatus`].
pub const PERF_CNTR_GLOBAL_STATUS_CLR: u32 = 0xC000_0302;

/// PerfCntrGlobalStatus and PerfCntrGlobalStatusClr (PPR for family 19h, MSRC000_0300 and MSRC000_0302).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct GlobalStatus {
    /// PerfCntrOvfl, bit n: counter n overflowed. Bits of counters that do not exist are reserved.
    pub overflowed: u16,
    #[bits(42)]
    _reserved: u64,
    /// LBRS_FROZEN: last branch records are frozen.
    pub lbrs_frozen: bool,
    /// PMCS_FROZEN: counters are frozen. Set on overflow if DebugCtl requests it.
    pub pmcs_frozen: bool,
    #[bits(4)]
    _reserved: u8,
}

/// PerfCntrGlobalCtl (PPR for family 19h, MSRC000_0301).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct GlobalCtl {
    /// PerfCntrEn, bit n: counter n can count. Bits of counters that do not exist are reserved.
    pub enabled: u16,
    #[bits(48)]
    _reserved: u64,
}
