//! IA32_DEBUGCTL.

use bitfield_struct::bitfield;

/// IA32_DEBUGCTL: [`DebugCtl`] (SDM Vol. 4, "Architectural MSRs").
pub const IA32_DEBUGCTL: u32 = 0x1D9;

/// IA32_DEBUGCTL of family 6 (SDM Vol. 3B 19.4.1, Figure 19-3; Vol. 4, "Architectural MSRs"). NetBurst has a different
/// layout at the same address.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct DebugCtl {
    /// LBR: record last branches.
    pub lbr: bool,
    /// BTF: single-step on branches.
    pub btf: bool,
    /// BLD: bus-lock detection; reserved without it.
    pub bld: bool,
    #[bits(3)]
    _reserved: u8,
    /// TR: send branch trace messages.
    pub tr: bool,
    /// BTS: store branch trace messages in the BTS buffer.
    pub bts: bool,
    /// BTINT: interrupt at the threshold of the BTS buffer; if clear, the buffer is circular.
    pub btint: bool,
    /// BTS_OFF_OS: do not store branches at privilege level 0.
    pub bts_off_os: bool,
    /// BTS_OFF_USR: do not store branches at privilege levels 1 to 3.
    pub bts_off_usr: bool,
    /// FREEZE_LBRS_ON_PMI.
    pub freeze_lbrs_on_pmi: bool,
    /// FREEZE_PERFMON_ON_PMI.
    pub freeze_perfmon_on_pmi: bool,
    /// ENABLE_UNCORE_PMI.
    pub enable_uncore_pmi: bool,
    /// FREEZE_WHILE_SMM.
    pub freeze_while_smm: bool,
    /// RTM_DEBUG.
    pub rtm_debug: bool,
    #[bits(48)]
    _reserved: u64,
}
