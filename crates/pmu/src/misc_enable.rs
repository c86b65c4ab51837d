//! IA32_MISC_ENABLE: what of performance monitoring a processor of Intel's has switched on.

use bitfield_struct::bitfield;

use crate::cpu::{Cpu, Msr};

/// [`MiscEnable`] (SDM Vol. 4, "Architectural MSRs").
const IA32_MISC_ENABLE: Msr = Msr::new(0x1A0);

/// IA32_MISC_ENABLE, as far as it is asked; never written.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct MiscEnable {
    #[bits(7)]
    __: u8,
    /// Performance Monitoring Available; read-only.
    pub perfmon_available: bool,
    #[bits(3)]
    __: u8,
    /// Branch Trace Storage Unavailable; read-only.
    pub bts_unavailable: bool,
    /// Processor Event Based Sampling Unavailable; read-only.
    pub pebs_unavailable: bool,
    #[bits(51)]
    __: u64,
}

impl MiscEnable {
    /// Of the current processor, which has it. One read. Any IRQL at which the processor stays the same.
    pub fn of(cpu: &impl Cpu) -> Self {
        Self::from_bits(cpu.rdmsr(IA32_MISC_ENABLE))
    }
}
