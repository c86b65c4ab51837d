//! Registers of AMD's performance counters, and the CPUID leaves that declare them.

use bitfield_struct::bitfield;

use crate::cpu::{Cpu, Msr};

/// PerfEvtSel0 to PerfEvtSel3, MSRC001_0000 to 0003 (APM Vol. 2, 13.2.1). Seed 000 has a misprint here.
pub const PERF_EVT_SEL0: Msr = Msr::new(0xC001_0000);

/// PerfCtr0 to PerfCtr3, MSRC001_0004 to 0007 (APM Vol. 2, 13.2.1).
pub const PERF_CTR0: Msr = Msr::new(0xC001_0004);

/// PERF_CTL0, MSRC001_0200; every other register from there on (APM Vol. 2, 13.2.1, "Core Performance Event-Select
/// Registers"). The first four are PerfEvtSel0 to 3 by another name.
pub const PERF_CTL0: Msr = Msr::new(0xC001_0200);

/// The core counters between those, from MSRC001_0201 on. The first four are PerfCtr0 to 3 by another name.
pub const CORE_PERF_CTR0: Msr = Msr::new(0xC001_0201);

/// PerfCntrGlobalStatus, MSRC000_0300 (APM Vol. 2, 13.2.1; PPR for family 19h, MSRC000_0300). Read-only.
pub const GLOBAL_STATUS: Msr = Msr::new(0xC000_0300);

/// PerfCntrGlobalCtl, MSRC000_0301 (same places). Comes out of reset with every counter let through.
pub const GLOBAL_CTL: Msr = Msr::new(0xC000_0301);

/// PerfCntrGlobalStatusClr, MSRC000_0302 (same places): a one clears the same bit of the status.
pub const GLOBAL_STATUS_CLR: Msr = Msr::new(0xC000_0302);

/// Bits of a counter (seed 003, 1.2; APM Vol. 2, 13.2.1, "PerfCtr").
pub const WIDTH: u8 = 48;

/// PerfEvtSeln and PERF_CTLn (APM Vol. 2, 13.2.1, "PerfEvtSel").
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
    /// E: count edges.
    pub edge: bool,
    /// Reserved, must be zero.
    __: bool,
    /// INT: interrupt on overflow.
    pub int: bool,
    /// Reserved, must be zero.
    __: bool,
    /// EN: count.
    pub en: bool,
    /// INV: invert the comparison with CntMask.
    pub inv: bool,
    /// CntMask.
    pub cnt_mask: u8,
    /// EventSelect\[11:8\].
    #[bits(4)]
    pub event_select_high: u8,
    /// Reserved, must be zero.
    #[bits(4)]
    __: u8,
    /// HG_ONLY: guest only, host only; zero counts both.
    #[bits(2)]
    pub hg_only: u8,
    /// Reserved, must be zero.
    #[bits(22)]
    __: u32,
}

/// PerfCntrGlobalStatus, and what PerfCntrGlobalStatusClr clears of it (PPR for family 19h, MSRC000_0300 and 0302).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct GlobalStatus {
    /// Bit n: counter n overflowed.
    pub overflowed: u16,
    /// Reserved, must be zero.
    #[bits(42)]
    __: u64,
    /// LBRS_FROZEN: the records of branches stand still.
    pub lbr_frozen: bool,
    /// PMCS_FROZEN: no counter counts. Set with an overflow, where somebody asked for that in DebugCtl.
    pub counters_frozen: bool,
    /// Reserved, must be zero.
    #[bits(4)]
    __: u8,
}

/// PerfCntrGlobalCtl (PPR for family 19h, MSRC000_0301).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct GlobalCtl {
    /// PerfCntrEn, bit n: counter n may count.
    pub enabled: u16,
    /// Reserved, must be zero.
    #[bits(48)]
    __: u64,
}

/// CPUID.80000001H, ECX (APM Vol. 3, E.4.2).
#[bitfield(u32)]
pub struct ExtendedFeatures {
    #[bits(23)]
    __: u32,
    /// PerfCtrExtCore: six counters in the core.
    pub perf_ctr_ext_core: bool,
    /// PerfCtrExtNB: the northbridge has counters of its own.
    pub perf_ctr_ext_nb: bool,
    #[bits(7)]
    __: u8,
}

impl ExtendedFeatures {
    /// Of the current processor, which has to have long mode.
    pub fn of(cpu: &impl Cpu) -> Self {
        Self::from_bits(cpu.cpuid(0x8000_0001, 0).ecx)
    }
}

/// CPUID.80000022H, EAX (APM Vol. 3, E.4.24, "Extended Performance Monitoring and Debug").
#[bitfield(u32)]
pub struct PerfMonEax {
    /// PerfMonV2: the global registers exist.
    pub version_2: bool,
    __: bool,
    /// LbrAndPmcFreeze: so do their bits for that.
    pub freeze: bool,
    #[bits(29)]
    __: u32,
}

/// CPUID.80000022H, EBX (same place).
#[bitfield(u32)]
pub struct PerfMonEbx {
    /// NumPerfCtrCore.
    #[bits(4)]
    pub counters: u8,
    #[bits(28)]
    __: u32,
}

/// What leaf 80000022H says on the current processor; nothing where that does not exist.
pub fn perf_mon(cpu: &impl Cpu) -> (PerfMonEax, PerfMonEbx) {
    if cpu.cpuid(0x8000_0000, 0).eax < 0x8000_0022 {
        return Default::default();
    }
    let leaf = cpu.cpuid(0x8000_0022, 0);
    (PerfMonEax::from_bits(leaf.eax), PerfMonEbx::from_bits(leaf.ebx))
}
