//! The registers of a processor as they are: all that the first accesses read, without a write.

use super::Hal;
use crate::cpu::{Cpuid, Msr};
use crate::current_cpu::ProcessorIndex;
use crate::debug_store;
use crate::extra::Selector;
use crate::first_access::{Access, Fault, FirstAccess, GeneralProtection, GuardedCpu, Phase};
use crate::lvt_pmi;
use raw_cpuid::CpuIdResult;

/// A register or a counter that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// [`Access::Read`] or [`Access::Counter`].
    pub access: Access,
    /// ECX: the address of the register, or the index of the counter.
    pub number: u32,
    /// What it contains, or that the access faulted.
    pub value: Result<u64, GeneralProtection>,
}

/// A processor that notes each reading. What faults reads as zero, so that the registers behind it are read as well.
struct Noting<'a, C, F> {
    cpu: &'a C,
    note: F,
}

impl<C, F: Fn(Reading)> Noting<'_, C, F> {
    fn note(&self, access: Access, number: u32, value: Result<u64, GeneralProtection>) -> u64 {
        (self.note)(Reading { access, number, value });
        value.unwrap_or(0)
    }
}

impl<C: GuardedCpu, F> Cpuid for Noting<'_, C, F> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        self.cpu.cpuid(leaf, subleaf)
    }
}

impl<C: GuardedCpu, F: Fn(Reading)> GuardedCpu for Noting<'_, C, F> {
    fn try_rdmsr(&self, msr: Msr) -> Result<u64, GeneralProtection> {
        Ok(self.note(Access::Read, msr.address(), self.cpu.try_rdmsr(msr)))
    }

    /// Never writes, and [`Phase::Read`] never asks for it.
    fn try_wrmsr(&self, _: Msr, _: u64) -> Result<(), GeneralProtection> {
        Err(GeneralProtection)
    }

    fn try_rdpmc(&self, index: u32) -> Result<u64, GeneralProtection> {
        Ok(self.note(Access::Counter, index, self.cpu.try_rdpmc(index)))
    }
}

impl<E> Hal<E> {
    /// Reads every register of the current processor, which is `processor`, that a session can touch, and every
    /// counter; `note` receives them in the order of the accesses, some more than once. None is written, and the
    /// results of the [first accesses](Self::access_first) stay as they are. Where CPUID does not
    /// [enumerate](Self::is_enumerated) the counters, only the registers of the local APIC are read.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn read_registers(&self, processor: ProcessorIndex, cpu: &impl GuardedCpu, note: impl Fn(Reading)) {
        let cpu = Noting { cpu, note };
        // Every fault is noted, and none is returned.
        let _ = self.read_all(processor, &FirstAccess::new(&cpu, Phase::Read));
    }

    fn read_all(&self, processor: ProcessorIndex, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Fault> {
        // A local APIC that is disabled hides no other register.
        let _ = lvt_pmi::access_first(first);
        let Some(pmu) = self.pmu(processor).filter(|_| self.enumerated) else { return Ok(()) };
        self.whole_interface_with(pmu).access_first(first)?;
        for selector in Selector::ALL {
            self.access_extra(processor, selector, first)?;
        }
        if let Some(emon) = self.unit_with(pmu) {
            emon.access_unit(first)?;
        }
        debug_store::access_first(first)
    }
}
