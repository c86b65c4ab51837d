//! Access to a processor for the profile interfaces.

use raw_cpuid::CpuIdResult;
use x86_defs::cpuid::{leaf, vendor_text};
use x86_defs::intel::misc_enable;

/// Address of a model-specific register that belongs to a profile interface.
///
/// Only this crate creates one, and only for a register that CPUID enumerates. Implementations of [`Cpu`] may rely on
/// this. A number from a client never becomes an `Msr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Msr(u32);

impl Msr {
    pub(crate) const fn new(address: u32) -> Self {
        Self(address)
    }

    /// Returns register `index` of a bank that begins at `self`.
    pub(crate) const fn at(self, index: u8) -> Self {
        Self(self.0 + index as u32)
    }

    /// Returns the value for ECX.
    #[must_use]
    pub const fn address(self) -> u32 {
        self.0
    }
}

/// CPUID of one processor: the current one, or one that is known by a dump only. For the current processor, the caller
/// ensures that the thread stays on it.
///
/// # IRQL
/// Any.
pub trait Cpuid {
    /// Returns the registers for `leaf` in EAX and `subleaf` in ECX.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult;
}

/// Returns the vendor string of leaf 0: EBX, EDX, ECX.
#[must_use]
pub fn vendor(cpu: &impl Cpuid) -> [u8; 12] {
    let registers = cpu.cpuid(leaf::VENDOR, 0);
    vendor_text([registers.ebx, registers.edx, registers.ecx])
}

/// The processor on which the caller runs. The caller ensures that the thread stays on it.
///
/// # IRQL
/// Any.
pub trait Cpu: Cpuid {
    /// Reads a register.
    fn rdmsr(&self, msr: Msr) -> u64;
    /// Writes a register.
    fn wrmsr(&self, msr: Msr, value: u64);
    /// Executes RDPMC. `index` must select a counter of the interface in use.
    fn rdpmc(&self, index: u32) -> u64;
    /// Returns CR4.PCE: whether programs may execute RDPMC at CPL 3 (SDM Vol. 3A, 2.5).
    fn user_rdpmc(&self) -> bool;
    /// Executes a loop of two instructions so many times, at least once: a decrement, and a branch that is taken while
    /// the result is not zero.
    fn run_loop(&self, iterations: u32);
    /// Executes RDTSC. Later reads on the same processor return no less, except after a sleep of the machine.
    fn time_stamp(&self) -> u64;
    /// Reads the LVT entry for performance counters; see [`LvtPerformance`](x86_defs::local_apic::LvtPerformance).
    fn lvt_pmi(&self) -> u32;
    /// Writes the LVT entry for performance counters.
    fn set_lvt_pmi(&self, entry: u32);
    /// Reads an extended LVT entry of AMD, of at most four; see
    /// [`XAPIC_EXTENDED_LVT`](x86_defs::local_apic::XAPIC_EXTENDED_LVT).
    fn extended_lvt(&self, index: u8) -> u32;
    /// Returns a word of the processor's [save area](crate::debug_store), or 0 if it has none.
    fn save_area(&self, word: u16) -> u64;
    /// Writes a word of the processor's save area.
    fn set_save_area(&self, word: u16, value: u64);
}

/// See [`MiscEnable`](misc_enable::MiscEnable).
pub(crate) const IA32_MISC_ENABLE: Msr = Msr::new(misc_enable::IA32_MISC_ENABLE);
