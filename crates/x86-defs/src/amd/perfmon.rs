//! Event select registers and counters (APM Vol. 2 13.2.1).

use bitfield_struct::bitfield;

/// PERF_LEGACY_CTL0, MSRC001_0000, first of [`LEGACY_COUNTERS`]: [`PerfEvtSel`]. The APM calls it PerfEvtSel0 (APM Vol.
/// 2 13.2.1; PPR for family 19h).
pub const PERF_LEGACY_CTL0: u32 = 0xC001_0000;

/// PERF_LEGACY_CTR0, MSRC001_0004, first of [`LEGACY_COUNTERS`]. The APM calls it PerfCtr0 (APM Vol. 2 13.2.1; PPR for
/// family 19h).
pub const PERF_LEGACY_CTR0: u32 = 0xC001_0004;

/// PERF_CTL0, MSRC001_0200, with PerfCtrExtCore: [`PerfEvtSel`]. The registers are [`STRIDE`] apart; the first four are
/// aliases of PERF_LEGACY_CTL0 to 3 (APM Vol. 2 13.2.1, "Core Performance Event-Select Registers").
pub const PERF_CTL0: u32 = 0xC001_0200;

/// PERF_CTR0, MSRC001_0201, with PerfCtrExtCore. The registers are [`STRIDE`] apart; the first four are aliases of
/// PERF_LEGACY_CTR0 to 3 (APM Vol. 2 13.2.1).
pub const PERF_CTR0: u32 = 0xC001_0201;

/// Distance from one register to the next in the banks of [`PERF_CTL0`] and [`PERF_CTR0`] (APM Vol. 2 13.2.1).
pub const STRIDE: u8 = 2;

/// Counters without PerfCtrExtCore (APM Vol. 2 13.2.1).
pub const LEGACY_COUNTERS: u8 = 4;

/// Counters with PerfCtrExtCore (APM Vol. 2 13.2.1). RDPMC numbers the core counters below this; the numbers that
/// follow belong to counters outside the core (APM Vol. 3, RDPMC).
pub const CORE_COUNTERS: u8 = 6;

/// Width of a counter in bits (APM Vol. 2 13.2.1, "PerfCtr").
pub const WIDTH: u8 = 48;

/// PerfEvtSeln, PERF_CTLn (APM Vol. 2 13.2.1, "PerfEvtSel").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PerfEvtSel {
    /// EventSelect\[7:0\].
    pub event_select: u8,
    /// UnitMask.
    pub unit_mask: u8,
    /// USR: count at CPL 3.
    pub usr: bool,
    /// OS: count at CPL 0.
    pub os: bool,
    /// E: edge detect.
    pub edge: bool,
    _reserved: bool,
    /// INT: interrupt on overflow.
    pub int: bool,
    _reserved: bool,
    /// EN: enable the counter.
    pub en: bool,
    /// INV: invert the comparison with CntMask.
    pub inv: bool,
    /// CntMask: counter mask.
    pub cnt_mask: u8,
    /// EventSelect\[11:8\]; reserved before family 10h.
    #[bits(4)]
    pub event_select_high: u8,
    #[bits(4)]
    _reserved: u8,
    /// HG_ONLY: count only in guests, or only in hosts. 0 counts both.
    #[bits(2)]
    pub hg_only: u8,
    #[bits(22)]
    _reserved: u32,
}
