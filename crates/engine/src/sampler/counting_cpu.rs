//! A processor for tests that counts the accesses to its registers.

use core::sync::atomic::{AtomicU64, Ordering};

use pmu::{Cpu, Cpuid, Msr};
use raw_cpuid::CpuIdResult;

/// A processor that counts the accesses to its registers.
#[derive(Default)]
pub struct CountingCpu(AtomicU64);

impl CountingCpu {
    /// Returns the number of accesses.
    pub fn accesses(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn touch(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed);
        0
    }
}

impl Cpuid for CountingCpu {
    fn cpuid(&self, _: u32, _: u32) -> CpuIdResult {
        CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 }
    }
}

impl Cpu for CountingCpu {
    fn rdmsr(&self, _: Msr) -> u64 {
        self.touch()
    }

    fn wrmsr(&self, _: Msr, _: u64) {
        self.touch();
    }

    fn rdpmc(&self, _: u32) -> u64 {
        self.touch()
    }

    fn lvt_pmi(&self) -> u32 {
        self.touch();
        0
    }

    fn extended_lvt(&self, _index: u8) -> u32 {
        0
    }

    fn set_lvt_pmi(&self, _: u32) {
        self.touch();
    }

    fn run_loop(&self, _: u32) {}

    fn time_stamp(&self) -> u64 {
        0
    }

    fn user_rdpmc(&self) -> bool {
        false
    }

    fn save_area(&self, _: u16) -> u64 {
        0
    }

    fn set_save_area(&self, _: u16, _: u64) {}
}
