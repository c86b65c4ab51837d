//! Every instruction that needs assembler.

#![expect(unsafe_code, reason = "rdmsr, wrmsr, rdpmc and the local APIC have no safe form")]

use core::arch::asm;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use pmu::lvt_pmi::X2APIC_LVT_PERFORMANCE;
use pmu::{Cpu, Cpuid, Msr};
use raw_cpuid::CpuIdResult;

use crate::nt::control_area;
use crate::nt::local_apic::{self, Entry};

/// The processor on which the code runs. Not `Send`: who has one stays where it is.
#[derive(Debug)]
pub struct Processor(PhantomData<*const ()>);

impl Processor {
    /// The current one. Who calls has seen to it that the thread does not move.
    pub const fn current() -> Self {
        Self(PhantomData)
    }
}

impl Cpuid for Processor {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        raw_cpuid::native_cpuid::cpuid_count(leaf, subleaf)
    }
}

impl Cpu for Processor {
    fn rdmsr(&self, msr: Msr) -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: an `Msr` names a register that CPUID declared, and reading those has no effect on memory
        unsafe {
            asm!("rdmsr", in("ecx") msr.address(), out("eax") low, out("edx") high,
                 options(nomem, nostack, preserves_flags));
        }
        u64::from(high) << 32 | u64::from(low)
    }

    fn wrmsr(&self, msr: Msr, value: u64) {
        let (low, high) = ((value & 0xFFFF_FFFF) as u32, (value >> 32) as u32);
        // SAFETY: an `Msr` names a performance monitoring register that CPUID declared, and `pmu`, which made it, leaves
        // reserved bits clear. One refers to memory, IA32_DS_AREA: it is given a control area that lives, with buffers
        // that live, until it is given what was there before
        unsafe {
            asm!("wrmsr", in("ecx") msr.address(), in("eax") low, in("edx") high,
                 options(nostack, preserves_flags));
        }
    }

    fn rdpmc(&self, index: u32) -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: `pmu` asks only for counters that CPUID declared, and the driver runs at CPL 0
        unsafe {
            asm!("rdpmc", in("ecx") index, out("eax") low, out("edx") high,
                 options(nomem, nostack, preserves_flags));
        }
        u64::from(high) << 32 | u64::from(low)
    }

    fn lvt_pmi(&self) -> u32 {
        match local_apic::entry() {
            Entry::Shut => 0,
            Entry::Register => (self.rdmsr(X2APIC_LVT_PERFORMANCE) & 0xFFFF_FFFF) as u32,
            Entry::Memory(address) => {
                let entry: u32;
                // SAFETY: mapped as long as it is not shut; one aligned access of 32 bits, as the local APIC wants it
                unsafe {
                    asm!("mov {entry:e}, [{address}]", entry = out(reg) entry, address = in(reg) address,
                         options(readonly, nostack, preserves_flags));
                }
                entry
            }
        }
    }

    fn save_area(&self, word: u8) -> u64 {
        control_area::word(word).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    fn set_save_area(&self, word: u8, value: u64) {
        if let Some(word) = control_area::word(word) {
            word.store(value, Ordering::Relaxed);
        }
    }

    fn set_lvt_pmi(&self, entry: u32) {
        match local_apic::entry() {
            Entry::Shut => {}
            Entry::Register => self.wrmsr(X2APIC_LVT_PERFORMANCE, entry.into()),
            Entry::Memory(address) => {
                // SAFETY: mapped as long as it is not shut; one aligned access of 32 bits, as the local APIC wants it
                unsafe {
                    asm!("mov [{address}], {entry:e}", entry = in(reg) entry, address = in(reg) address,
                         options(nostack, preserves_flags));
                }
            }
        }
    }
}
