//! A processor whose registers are plain memory, and a machine of it: an access is a load or a store, as in the driver
//! it is an instruction.

mod grant;

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use cpuid_dumps::CpuIdentity;
use engine::{Platform, Ticks};
use pmu::first_access::GeneralProtection;
use pmu::state::CounterSet;
use pmu::{Cpu, Cpuid, CurrentCpu, GuardedCpu, Msr, ProcessorIndex};
use protocol::{NtStatus, ProcessorSet};
use raw_cpuid::CpuIdResult;

use grant::grant_everything;

/// IA32_PERF_GLOBAL_STATUS, and PerfCntrGlobalStatus.
const STATUS: [u32; 2] = [0x38E, 0xC000_0300];

/// IA32_APIC_BASE, and its value: at its usual address, and enabled.
const APIC_BASE: (u32, u64) = (0x1B, 0xFEE0_0900);

/// IA32_PERF_CAPABILITIES.
const CAPABILITIES: u32 = 0x345;

/// IA32_DEBUGCTL, and MSR_LBR_SELECT: the registers whose values are compared.
const COMPARED: [u32; 2] = [0x1D9, 0x1C8];

/// MSR_LASTBRANCH_0_FROM_IP and MSR_LASTBRANCH_0_TO_IP, each the first of 32.
const LAST_BRANCHES: [u32; 2] = [0x680, 0x6C0];

/// An address of kernel mode, which the trial of the records looks for.
const BRANCH: u64 = 0xFFFF_F800_0000_1000;

/// By what each read advances the time-stamp counter.
const STAMPS: u64 = 1_000;

/// Number of leaves of each range of CPUID that are plain memory, too.
const LEAVES: u32 = 0x40;

/// The first leaf of each range: the standard and the extended one.
const RANGES: [u32; 2] = [0, 0x8000_0000];

/// A processor with some counters that have overflowed at every look. With `CONTENTS`, the registers of last branches
/// have contents of their own, which are searched for: a bench that counts instructions would count the search.
pub struct PlainCpu<const CONTENTS: bool = false> {
    identity: &'static CpuIdentity,
    /// The first subleaf of [`LEAVES`] of each range.
    leaves: [Vec<CpuIdResult>; 2],
    status: AtomicU64,
    /// Values of the counters.
    pub counters: [AtomicU64; 4],
    written: AtomicU64,
    compared: [AtomicU64; 2],
    /// LBR_FMT; 0 of a processor that is used without last branches.
    branch_format: u64,
    time_stamp: AtomicU64,
    /// What a clock shows.
    pub clock: AtomicU64,
}

impl<const CONTENTS: bool> PlainCpu<CONTENTS> {
    /// Of this identity, with the first `overflowed` of four counters.
    pub fn new(name: &str, overflowed: u8) -> Self {
        let identity = cpuid_dumps::find(name).expect("an identity");
        let overflowed = CounterSet::first(overflowed);
        // The top bit of a counter tells: it is set until the counter overflows.
        let before_overflow = 1 << (identity.expected.width - 1) | 0x1234;
        let count = |counter| if overflowed.iter().any(|one| one == counter) { 17 } else { before_overflow };
        Self {
            identity,
            leaves: RANGES.map(|first| (first..first + LEAVES).map(|leaf| read(identity, leaf, 0)).collect()),
            status: AtomicU64::new(overflowed.bits().into()),
            counters: [0, 1, 2, 3].map(|counter| AtomicU64::new(count(counter))),
            written: AtomicU64::new(0),
            compared: Default::default(),
            branch_format: 0,
            time_stamp: AtomicU64::new(0),
            clock: AtomicU64::new(0),
        }
    }

    /// With last branch records of this format, which are always full.
    pub const fn with_branches(mut self, format: u64) -> Self {
        self.branch_format = format;
        self
    }

    fn memory(&self, msr: Msr) -> &AtomicU64 {
        if !CONTENTS {
            return &self.written;
        }
        let compared = COMPARED.iter().zip(&self.compared).find(|(register, _)| **register == msr.address());
        compared.map_or(&self.written, |(_, value)| value)
    }

    /// Returns the constant value of a register, if it has one.
    fn constant(&self, msr: u32) -> Option<u64> {
        if !CONTENTS {
            return None;
        }
        let (apic, base) = APIC_BASE;
        let is_entry = || LAST_BRANCHES.iter().any(|first| (*first..first + 32).contains(&msr));
        match msr {
            _ if msr == apic => Some(base),
            _ if self.branch_format == 0 => None,
            CAPABILITIES => Some(self.branch_format),
            _ => is_entry().then_some(BRANCH),
        }
    }
}

impl<const CONTENTS: bool> Cpuid for PlainCpu<CONTENTS> {
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult {
        let [standard, extended] = &self.leaves;
        let range = if leaf < RANGES[1] { standard } else { extended };
        let known = range.get((leaf & !RANGES[1]) as usize).filter(|_| subleaf == 0);
        known.copied().unwrap_or_else(|| read(self.identity, leaf, subleaf))
    }
}

fn read(identity: &CpuIdentity, leaf: u32, subleaf: u32) -> CpuIdResult {
    let [eax, ebx, ecx, edx] = identity.cpuid().cpuid(leaf, subleaf);
    CpuIdResult { eax, ebx, ecx, edx }
}

impl<const CONTENTS: bool> Cpu for PlainCpu<CONTENTS> {
    #[inline]
    fn rdmsr(&self, msr: Msr) -> u64 {
        let register = if STATUS.contains(&msr.address()) { &self.status } else { self.memory(msr) };
        self.constant(msr.address()).unwrap_or_else(|| register.load(Ordering::Relaxed))
    }

    #[inline]
    fn wrmsr(&self, msr: Msr, value: u64) {
        self.memory(msr).store(value, Ordering::Relaxed);
    }

    #[inline]
    fn rdpmc(&self, index: u32) -> u64 {
        self.counters.get((index & 3) as usize).map_or(0, |value| value.load(Ordering::Relaxed))
    }

    #[inline]
    fn lvt_pmi(&self) -> u32 {
        std::hint::black_box(0xFE)
    }

    #[inline]
    fn extended_lvt(&self, _index: u8) -> u32 {
        0
    }

    fn set_lvt_pmi(&self, entry: u32) {
        self.written.store(entry.into(), Ordering::Relaxed);
    }

    fn run_loop(&self, _iterations: u32) {}

    #[inline]
    fn time_stamp(&self) -> u64 {
        self.time_stamp.fetch_add(STAMPS, Ordering::Relaxed)
    }

    fn user_rdpmc(&self) -> bool {
        false
    }

    fn save_area(&self, _word: u16) -> u64 {
        0
    }

    fn set_save_area(&self, _word: u16, _value: u64) {}
}

/// A machine with one such processor.
pub struct Plain<const CONTENTS: bool = false> {
    /// It.
    pub cpu: PlainCpu<CONTENTS>,
}

impl<const CONTENTS: bool> GuardedCpu for PlainCpu<CONTENTS> {
    type Identity = Self;

    fn identity(&self) -> &Self {
        self
    }

    fn try_rdmsr(&self, msr: Msr) -> Result<u64, GeneralProtection> {
        Ok(self.rdmsr(msr))
    }

    fn try_wrmsr(&self, msr: Msr, value: u64) -> Result<(), GeneralProtection> {
        self.wrmsr(msr, value);
        Ok(())
    }

    fn try_rdpmc(&self, index: u32) -> Result<u64, GeneralProtection> {
        Ok(self.rdpmc(index))
    }

    fn run_loop(&self, _iterations: u32) {}
}

impl<const CONTENTS: bool> Platform for &Plain<CONTENTS> {
    type Cpu = PlainCpu<CONTENTS>;
    type PinnedCpu = PlainCpu<CONTENTS>;

    grant_everything!();

    fn processors(&self) -> u32 {
        1
    }

    fn maximum_processors(&self) -> u32 {
        1
    }

    fn on_boot_processor<T>(&self, work: impl FnOnce(&PlainCpu<CONTENTS>) -> T) -> T {
        work(&self.cpu)
    }

    fn on_processor<T>(
        &self,
        _processor: ProcessorIndex,
        work: impl FnOnce(&PlainCpu<CONTENTS>) -> T,
    ) -> Result<T, NtStatus> {
        Ok(work(&self.cpu))
    }

    fn on_processors(&self, _processors: &ProcessorSet, work: &(impl Fn(CurrentCpu<'_, PlainCpu<CONTENTS>>) + Sync)) {
        work(CurrentCpu::new(&self.cpu, ProcessorIndex::BOOT));
    }

    fn clock(&self) -> Ticks {
        Ticks(self.cpu.clock.load(Ordering::Relaxed))
    }

    fn shared_clock(&self) -> impl Fn() -> Ticks + Sync {
        || self.clock()
    }

    fn begin_sampling(&self) -> Result<NonZeroU64, NtStatus> {
        Ok(NonZeroU64::MIN)
    }

    fn end_sampling(&self) {}
}
