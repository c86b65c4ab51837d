//! The processor as profile interfaces see it.

use raw_cpuid::CpuIdResult;
use x86_defs::intel::misc_enable::{self, MiscEnable};

/// Address of a model-specific register that a profile interface owns.
///
/// Only this crate makes one, and only for registers that CPUID has declared: what implements [`Cpu`] may
/// rely on it, and no number of a client's ever becomes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Msr(u32);

impl Msr {
    pub(crate) const fn new(address: u32) -> Self {
        Self(address)
    }

    /// The `index`th register of a bank that begins at `self`.
    pub(crate) const fn at(self, index: u8) -> Self {
        Self(self.0 + index as u32)
    }

    /// What goes into ECX.
    #[must_use]
    pub const fn address(self) -> u32 {
        self.0
    }
}

/// CPUID of one processor: the one on which the caller runs, or one of which nothing else is known. Any IRQL. On the current
/// processor, the caller ensures that it stays the same.
pub trait Cpuid {
    /// Returns the registers for `leaf` in EAX and `subleaf` in ECX.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult;
}

/// The processor on which the caller runs, at any IRQL. The caller ensures that it stays the same.
pub trait Cpu: Cpuid {
    /// RDMSR.
    fn rdmsr(&self, msr: Msr) -> u64;
    /// WRMSR.
    fn wrmsr(&self, msr: Msr, value: u64);
    /// RDPMC: what goes into ECX is of a counter that the interface in use has.
    fn rdpmc(&self, index: u32) -> u64;
    /// The entry for counters in the local APIC's vector table: [`LvtPerformance`](x86_defs::local_apic::LvtPerformance).
    fn lvt_pmi(&self) -> u32;
    /// Writes that entry.
    fn set_lvt_pmi(&self, entry: u32);
    /// A word of the processor's [save area](crate::debug_store), while there is one; else 0.
    fn save_area(&self, word: u8) -> u64;
    /// Writes one.
    fn set_save_area(&self, word: u8, value: u64);
}

/// Returns IA32_MISC_ENABLE of the current processor, which has to have that register. One read. Any IRQL at which the
/// processor stays the same.
pub(crate) fn misc_enable(cpu: &impl Cpu) -> MiscEnable {
    const IA32_MISC_ENABLE: Msr = Msr::new(misc_enable::IA32_MISC_ENABLE);
    MiscEnable::from_bits(cpu.rdmsr(IA32_MISC_ENABLE))
}
