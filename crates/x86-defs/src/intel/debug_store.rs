//! The Debug Store (DS): memory into which the processor writes branches (BTS) and sampled events (PEBS) by itself
//! (SDM Vol. 3B, "Debug Store (DS) Mechanism" and 19.4.9, "BTS and DS Save Area").

pub mod area;
pub mod bts;
pub mod pebs;

use bitfield_struct::bitfield;

/// IA32_DS_AREA: linear address of the [`DsArea`](area::DsArea) (SDM Vol. 4, "Architectural MSRs").
pub const IA32_DS_AREA: u32 = 0x600;

/// IA32_PEBS_ENABLE: [`PebsEnable`] (SDM Vol. 3B 21.3.1.1.1; Vol. 4, "Architectural MSRs").
pub const IA32_PEBS_ENABLE: u32 = 0x3F1;

/// IA32_PEBS_ENABLE (SDM Vol. 3B 21.3.1.1.1; Vol. 4, "Architectural MSRs").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PebsEnable {
    /// PEBS_EN_PMCn, bit n: overflows of general-purpose counter n are recorded.
    pub general: u32,
    /// LL_EN_PMCn of Nehalem to Cascade Lake, bit n: general-purpose counter n records load latency (SDM Vol. 3B, "Load
    /// Latency Performance Monitoring Facility"). From Ice Lake on PEBS_EN_FIXEDn, bit n: overflows of fixed-function
    /// counter n are recorded ("Extended PEBS").
    #[bits(31)]
    pub latency_or_fixed: u32,
    /// PS_EN of Sandy Bridge and Ivy Bridge: general-purpose counter 3 records precise stores (SDM Vol. 3B, "Precise
    /// Store Facility").
    pub precise_store: bool,
}

/// MSR_PEBS_DATA_CFG: the optional groups of the records of the counters with
/// [Adaptive_Record](super::perfmon::PerfEvtSel::adaptive_record), in the bits of
/// [`RecordFormat`](pebs::RecordFormat) (SDM Vol. 3B, "MSR_PEBS_DATA_CFG").
pub const MSR_PEBS_DATA_CFG: u32 = 0x3F2;
