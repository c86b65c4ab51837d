//! Registers that complete the selection of some events: off-core and off-module response, load latency, front end.

use bitfield_struct::bitfield;

/// First off-core response register: [`OffcoreResponse`], [`OffcoreResponseNehalem`] (SDM Vol. 4, tables of the
/// processors; Vol. 3B, "Off-core Response Performance Monitoring" of each generation).
pub const MSR_OFFCORE_RSP_0: u32 = 0x1A6;

/// Second off-core response register. Nehalem lacks it.
pub const MSR_OFFCORE_RSP_1: u32 = 0x1A7;

/// First of the four off-module response registers, which Nova Lake and Diamond Rapids have instead:
/// [`OffModuleResponse`] (Linux, arch/x86/include/asm/msr-index.h, `MSR_OMR_0`).
pub const MSR_OMR_0: u32 = 0x3E0;

/// The second one.
pub const MSR_OMR_1: u32 = 0x3E1;

/// The third one.
pub const MSR_OMR_2: u32 = 0x3E2;

/// The fourth one.
pub const MSR_OMR_3: u32 = 0x3E3;

/// Threshold of load latency: [`LoadLatencyThreshold`] (SDM Vol. 4, "Architectural MSRs" and tables of the processors).
pub const MSR_PEBS_LD_LAT_THRESHOLD: u32 = 0x3F6;

/// Front-end event: [`FrontEnd`] (SDM Vol. 4, tables of Skylake and later processors).
pub const MSR_PEBS_FRONTEND: u32 = 0x3F7;

/// MSR_OFFCORE_RSP_x from Sandy Bridge on (SDM Vol. 3B, "Off-core Response Performance Monitoring" of Sandy Bridge).
/// Which bits exist differs between models.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct OffcoreResponse {
    /// Request types.
    pub requests: u16,
    /// Responses: any, suppliers, snoop results.
    #[bits(48)]
    pub responses: u64,
}

/// MSR_OFFCORE_RSP_x of Nehalem and Westmere (SDM Vol. 3B, "Off-core Response Performance Monitoring in the Processor
/// Core").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct OffcoreResponseNehalem {
    /// Request types.
    pub requests: u8,
    /// Responses.
    pub responses: u8,
    #[bits(48)]
    _reserved: u64,
}

/// MSR_OMR_x (Linux, arch/x86/events/intel/core.c, `intel_pnc_extra_regs` and `arw_hw_cache_extra_regs`). Which bits
/// exist differs between core types.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct OffModuleResponse {
    /// Request types.
    pub requests: u16,
    /// Responses: suppliers, snoop results, any.
    #[bits(48)]
    pub responses: u64,
}

/// MSR_PEBS_LD_LAT_THRESHOLD (SDM Vol. 3B, "Load Latency Performance Monitoring Facility").
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct LoadLatencyThreshold {
    /// Minimum latency of the loads that are recorded, in core cycles. The smallest value is 3.
    pub cycles: u16,
    #[bits(48)]
    _reserved: u64,
}

/// MSR_PEBS_FRONTEND (SDM Vol. 3B, "Frontend Precise Event": `MSR_PEBS_FRONTEND` of Skylake). Later processors have
/// more events in the lowest eight bits.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct FrontEnd {
    /// EVTSEL: the event.
    pub event: u8,
    /// IDQ_Bubble_Length: minimum number of cycles of a bubble.
    #[bits(12)]
    pub bubble_length: u16,
    /// IDQ_Bubble_Width: minimum number of empty slots of a bubble.
    #[bits(3)]
    pub bubble_width: u8,
    #[bits(41)]
    _reserved: u64,
}
