//! The processor that runs the code, and the instructions that need inline assembly.

use core::arch::asm;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use pmu::ibs::x2apic_entry;
use pmu::lvt_pmi::X2APIC_LVT_PERFORMANCE;
use pmu::{Cpu, Cpuid, CurrentCpu, Msr};
use raw_cpuid::CpuIdResult;
use x86_defs::control_register::CR4_PCE;
use x86_defs::local_apic::{XAPIC_EXTENDED_LVT, XAPIC_LVT_PERFORMANCE};

use crate::control_area;
use crate::current::current_processor;
use crate::local_apic::{self, Entry};

/// The processor on which the code runs.
///
/// It is not `Send`.
#[derive(Debug)]
pub struct Processor(PhantomData<*const ()>);

impl Processor {
    /// Returns the current processor.
    ///
    /// # Safety
    /// The thread stays on this processor while the value lives.
    #[must_use]
    pub const unsafe fn current() -> Self {
        Self(PhantomData)
    }
}

/// Executes the known loop: a decrement and a branch that is taken while the result is not zero.
pub fn known_loop(iterations: u32) {
    // SAFETY: the loop changes a register and the flags, and ends when the register is zero
    unsafe {
        asm!("2:", "dec ecx", "jnz 2b", inout("ecx") iterations.max(1) => _, options(nomem, nostack));
    }
}

/// Runs `work` with the token of the current processor.
///
/// # Safety
/// The IRQL is PROFILE_LEVEL, which is HIGH_LEVEL, until `work` returns: the code does not leave the processor.
#[inline]
pub unsafe fn with_current<T>(work: impl FnOnce(CurrentCpu<'_, Processor>) -> T) -> T {
    work(CurrentCpu::new(&Processor(PhantomData), current_processor()))
}

impl Cpuid for Processor {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        raw_cpuid::native_cpuid::cpuid_count(leaf, subleaf)
    }
}

/// Reads a register of the local APIC, which requires one aligned access of 32 bits.
///
/// # Safety
/// It is one, and mapped.
#[inline]
unsafe fn read_register(address: *const u32) -> u32 {
    let value: u32;
    // SAFETY: by the caller
    unsafe {
        asm!("mov {value:e}, [{address}]", value = out(reg) value, address = in(reg) address,
             options(readonly, nostack, preserves_flags));
    }
    value
}

impl Cpu for Processor {
    #[inline]
    fn rdmsr(&self, msr: Msr) -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: an `Msr` names a register that CPUID enumerates, and reading one has no effect on memory
        unsafe {
            asm!("rdmsr", in("ecx") msr.address(), out("eax") low, out("edx") high,
                 options(nomem, nostack, preserves_flags));
        }
        u64::from(high) << 32 | u64::from(low)
    }

    #[inline]
    fn wrmsr(&self, msr: Msr, value: u64) {
        let (low, high) = ((value & 0xFFFF_FFFF) as u32, (value >> 32) as u32);
        // SAFETY: an `Msr` names a performance monitoring register that CPUID enumerates, and `pmu`, which creates it,
        // leaves reserved bits clear. Two of them refer to memory: IA32_DS_AREA and IA32_PEBS_BASE. The control area
        // written there and its buffers live until the old value is restored
        unsafe {
            asm!("wrmsr", in("ecx") msr.address(), in("eax") low, in("edx") high,
                 options(nostack, preserves_flags));
        }
    }

    #[inline]
    fn rdpmc(&self, index: u32) -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: `pmu` reads only counters that CPUID enumerates, and the driver runs at CPL 0
        unsafe {
            asm!("rdpmc", in("ecx") index, out("eax") low, out("edx") high,
                 options(nomem, nostack, preserves_flags));
        }
        u64::from(high) << 32 | u64::from(low)
    }

    fn user_rdpmc(&self) -> bool {
        let cr4: u64;
        // SAFETY: the driver runs at CPL 0, and reading the register has no effect
        unsafe { asm!("mov rax, cr4", out("rax") cr4, options(nomem, nostack, preserves_flags)) };
        cr4 & CR4_PCE != 0
    }

    fn run_loop(&self, iterations: u32) {
        known_loop(iterations);
    }

    #[inline]
    fn time_stamp(&self) -> u64 {
        // SAFETY: every x86-64 processor has the instruction, and CR4.TSD does not apply at CPL 0
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    #[inline]
    fn lvt_pmi(&self) -> u32 {
        match local_apic::entry() {
            Entry::Shut => 0,
            Entry::Register => (self.rdmsr(X2APIC_LVT_PERFORMANCE) & 0xFFFF_FFFF) as u32,
            // SAFETY: the page is mapped until it is closed
            Entry::Memory(address) => unsafe { read_register(address) },
        }
    }

    fn extended_lvt(&self, index: u8) -> u32 {
        const FROM_PERFORMANCE: u16 = XAPIC_EXTENDED_LVT - XAPIC_LVT_PERFORMANCE;
        match local_apic::entry() {
            Entry::Shut => 0,
            Entry::Register => (self.rdmsr(x2apic_entry(index)) & 0xFFFF_FFFF) as u32,
            Entry::Memory(address) => {
                let entry = address.wrapping_byte_add(usize::from(FROM_PERFORMANCE + 0x10 * u16::from(index & 3)));
                // SAFETY: the page is mapped until it is closed, and has the register
                unsafe { read_register(entry) }
            }
        }
    }

    fn save_area(&self, word: u16) -> u64 {
        control_area::word(word).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn set_save_area(&self, word: u16, value: u64) {
        if let Some(word) = control_area::word(word) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn set_lvt_pmi(&self, entry: u32) {
        match local_apic::entry() {
            Entry::Shut => {}
            Entry::Register => self.wrmsr(X2APIC_LVT_PERFORMANCE, entry.into()),
            Entry::Memory(address) => {
                // SAFETY: the page is mapped until it is closed; the local APIC requires one aligned access of 32 bits
                unsafe {
                    asm!("mov [{address}], {entry:e}", entry = in(reg) entry, address = in(reg) address,
                         options(nostack, preserves_flags));
                }
            }
        }
    }
}
