//! The registers.

use bitfield_struct::bitfield;

use crate::cpu::Msr;

/// [`DebugCtl`] (SDM Vol. 4, "Architectural MSRs").
pub const IA32_DEBUGCTL: Msr = Msr::new(0x1D9);

/// Which counters record: bit n is general counter n (SDM Vol. 3B, 21.3.1.1.1; Vol. 4).
pub const IA32_PEBS_ENABLE: Msr = Msr::new(0x3F1);

/// The linear address of the save area (SDM Vol. 4, "Architectural MSRs").
pub const IA32_DS_AREA: Msr = Msr::new(0x600);

/// IA32_DEBUGCTL (SDM Vol. 3B, 19.4.1, Figure 19-3). What has no name here belongs to others, and stays.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct DebugCtl {
    /// LBR, BTF and others.
    #[bits(6)]
    __: u8,
    /// TR: branch trace messages are sent.
    pub tr: bool,
    /// BTS: they go to the buffer.
    pub bts: bool,
    /// BTINT: an interrupt at the threshold; else the buffer is circular.
    pub btint: bool,
    /// BTS_OFF_OS: none of privilege level 0.
    pub bts_off_os: bool,
    /// BTS_OFF_USR: none of the others.
    pub bts_off_usr: bool,
    /// FREEZE_LBRS_ON_PMI and others.
    #[bits(53)]
    __: u64,
}

/// CPUID leaf 1, EDX, as far as it is asked (SDM Vol. 2A, CPUID).
#[bitfield(u32)]
#[derive(PartialEq, Eq)]
pub struct Leaf1Edx {
    #[bits(5)]
    __: u8,
    /// MSR: there are RDMSR and WRMSR.
    pub msr: bool,
    #[bits(15)]
    __: u16,
    /// DS: the Debug Store.
    pub ds: bool,
    #[bits(10)]
    __: u16,
}
