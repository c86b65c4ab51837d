//! Extended leaves of AMD.

use bitfield_struct::bitfield;

/// CPUID.80000001H:EBX (APM Vol. 3 E.4.2).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf80000001Ebx {
    #[bits(28)]
    _other: u32,
    /// PkgType: the package, numbered by each family; [`PACKAGE_G34`] is one of family 10h. Reserved before that
    /// family.
    #[bits(4)]
    pub pkg_type: u8,
}

/// PkgType of the G34 package in family 10h (Revision Guide for family 10h, "CPUID Fn8000_0001_EBX\[PkgType\]").
pub const PACKAGE_G34: u8 = 3;

/// CPUID.80000001H:ECX (APM Vol. 3 E.4.2).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf80000001Ecx {
    #[bits(10)]
    _other: u16,
    /// IBS: Instruction-Based Sampling.
    pub ibs: bool,
    #[bits(12)]
    _other: u16,
    /// PerfCtrExtCore: six core counters with registers of their own.
    pub perf_ctr_ext_core: bool,
    /// PerfCtrExtNB: northbridge counters.
    pub perf_ctr_ext_nb: bool,
    #[bits(7)]
    _other: u8,
}

/// CPUID.80000001H:EDX (APM Vol. 3 E.4.2).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf80000001Edx {
    #[bits(29)]
    _other: u32,
    /// LM: long mode.
    pub long_mode: bool,
    #[bits(2)]
    _other: u8,
}

/// CPUID.80000007H:EDX (APM Vol. 3 E.4.6; SDM Vol. 2A, CPUID).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf80000007Edx {
    _other: u8,
    /// TscInvariant: the time-stamp counter runs at a constant rate in all P, C and T states.
    pub tsc_invariant: bool,
    #[bits(23)]
    _other: u32,
}

/// CPUID.80000008H:ECX (APM Vol. 3 E.4.7).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf80000008Ecx {
    /// NC: cores of the processor, minus 1.
    pub cores_minus_1: u8,
    #[bits(4)]
    _reserved: u8,
    /// ApicIdSize: low bits of the initial APIC ID that number the core; if 0, as many as `cores_minus_1` needs.
    #[bits(4)]
    pub apic_id_size: u8,
    _other: u16,
}

/// CPUID.80000008H:EBX (APM Vol. 3 E.4.7).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf80000008Ebx {
    #[bits(31)]
    _other: u32,
    /// BRS: Branch Sampling.
    pub brs: bool,
}

/// CPUID.8000001BH:EAX (PPR, "Instruction Based Sampling Identifiers").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf8000001BEax {
    /// IBSFFV: the other bits are valid.
    pub ibs_ffv: bool,
    /// FetchSam: samples fetches.
    pub fetch_sam: bool,
    /// OpSam: samples ops.
    pub op_sam: bool,
    /// RdWrOpCnt: software reads and writes the counter.
    pub rd_wr_op_cnt: bool,
    /// OpCnt: counts ops instead of cycles.
    pub op_cnt: bool,
    /// BrnTrgt: the target of branches.
    pub brn_trgt: bool,
    /// OpCntExt: the counter has 27 bits, not 20.
    pub op_cnt_ext: bool,
    /// RipInvalidChk: a bit tells that the address of the instruction is invalid.
    pub rip_invalid_chk: bool,
    #[bits(3)]
    _other: u8,
    /// Zen 4's extensions: sources of five bits, and samples of misses of the L3 cache alone.
    pub zen4_extensions: bool,
    #[bits(20)]
    _other: u32,
}

/// CPUID.80000022H:EAX (APM Vol. 3 E.4.24, "Extended Performance Monitoring and Debug").
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf80000022Eax {
    /// PerfMonV2: the registers of [`perfmon_v2`](crate::amd::perfmon_v2) exist.
    pub perf_mon_v2: bool,
    /// LbrStack: last branch records.
    pub lbr_stack: bool,
    /// LbrAndPmcFreeze: DebugCtl can freeze counters and last branch records on overflow.
    pub lbr_and_pmc_freeze: bool,
    #[bits(29)]
    _reserved: u32,
}

/// CPUID.80000022H:EBX (APM Vol. 3 E.4.24).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf80000022Ebx {
    /// NumPerfCtrCore: core counters.
    #[bits(4)]
    pub num_perf_ctr_core: u8,
    /// LbrStackSize: entries of the last branch record stack.
    #[bits(6)]
    pub lbr_stack_size: u8,
    /// NumPerfCtrNB: northbridge counters.
    #[bits(6)]
    pub num_perf_ctr_nb: u8,
    /// Counters outside the core and the northbridge; reserved on processors without such counters.
    _other: u16,
}
