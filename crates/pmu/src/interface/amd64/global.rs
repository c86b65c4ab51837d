//! PerfMonV2: the global registers (APM Vol. 2, 13.2.1). A counter counts only while its bit in the control register is
//! set too, and a status register reports which counters overflowed.

use x86_defs::amd::perfmon_v2::{self, GlobalCtl, GlobalStatus};

use crate::cpu::{Cpu, Msr};
use crate::disturbance::Disturbance;
use crate::first_access::{Access, Fault, Faulted, FirstAccess, GuardedCpu};
use crate::state::{CounterSet, CpuCounters, PerCpuPmu};

const PERF_CNTR_GLOBAL_STATUS: Msr = Msr::new(perfmon_v2::PERF_CNTR_GLOBAL_STATUS);
const PERF_CNTR_GLOBAL_CTL: Msr = Msr::new(perfmon_v2::PERF_CNTR_GLOBAL_CTL);
const PERF_CNTR_GLOBAL_STATUS_CLR: Msr = Msr::new(perfmon_v2::PERF_CNTR_GLOBAL_STATUS_CLR);

/// The bits of the global registers that belong to the driver.
#[derive(Debug, Clone, Copy)]
pub struct Global {
    /// Bits of the status that the driver may clear.
    clearable: GlobalStatus,
    /// Bits of the control register that the driver may set.
    own: GlobalCtl,
}

/// Returns the bits of the counters in the global registers, which have 16.
fn low(counters: CounterSet) -> u16 {
    (counters.bits() & 0xFFFF) as u16
}

/// Reads the control register.
pub fn control(cpu: &impl Cpu) -> u64 {
    cpu.rdmsr(PERF_CNTR_GLOBAL_CTL)
}

/// Reads the control register, guarded.
pub fn first_control(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<u64, Faulted> {
    first.read(PERF_CNTR_GLOBAL_CTL)
}

/// Writes the control register.
pub fn set_control(cpu: &impl Cpu, control: u64) {
    cpu.wrmsr(PERF_CNTR_GLOBAL_CTL, control);
}

/// Clears the bits of a status that was read.
pub fn clear(cpu: &impl Cpu, status: GlobalStatus) {
    cpu.wrmsr(PERF_CNTR_GLOBAL_STATUS_CLR, status.into_bits());
}

fn changes(pmu: &PerCpuPmu, own: u64, found: u64) -> (u64, Option<(CounterSet, Disturbance)>) {
    let control = found & !own | pmu.snapshot.control() & own;
    pmu.snapshot.set_control(control);
    let counters = CounterSet::from_bits(u64::from(GlobalCtl::from_bits((found ^ control) & own).enabled()));
    (control, Disturbance::of(PERF_CNTR_GLOBAL_CTL, found, control).map(|disturbance| (counters, disturbance)))
}

/// Takes neither `Global` nor `CpuCounters`, which would be copied to the stack of the handler.
#[cold]
#[inline(never)]
fn note_changes(pmu: &PerCpuPmu, own: u64, found: u64) -> u64 {
    let (control, changed) = changes(pmu, own, found);
    pmu.disturbances.note_found(changed);
    control
}

/// Returns the disturbance of all `active` counters if the status reports that they were frozen.
pub fn freeze(active: CounterSet, status: GlobalStatus) -> Option<(CounterSet, Disturbance)> {
    let running = status.with_pmcs_frozen(false);
    Some((active, Disturbance::of(PERF_CNTR_GLOBAL_STATUS, status.into_bits(), running.into_bits())?))
}

/// Notes a [freeze] in an interrupt.
#[cold]
#[inline(never)]
pub fn note_freeze(pmu: &PerCpuPmu, status: GlobalStatus) {
    pmu.disturbances.note_found(freeze(pmu.active().all, status));
}

impl Global {
    /// Creates the masks for these counters. `freeze` tells whether the processor can freeze counters: otherwise the
    /// bit for it does not exist and must not be written.
    pub fn new(counters: CounterSet, freeze: bool) -> Self {
        let counters = low(counters);
        Self {
            clearable: GlobalStatus::new().with_overflowed(counters).with_pmcs_frozen(freeze),
            own: GlobalCtl::new().with_enabled(counters),
        }
    }

    /// Returns the bits of the status that the driver may clear.
    pub const fn clearable(self) -> u64 {
        self.clearable.into_bits()
    }

    /// Returns the global registers with these bits of the status for the driver to clear, beside bits of other uses.
    #[inline]
    pub const fn with_clearable(self, clearable: u64) -> Self {
        const ALL: u64 = GlobalStatus::new().with_overflowed(u16::MAX).with_pmcs_frozen(true).into_bits();
        Self { clearable: GlobalStatus::from_bits(clearable & ALL), ..self }
    }

    /// Accesses every register for the first time. Returns the registers without the bit for frozen counters if it
    /// cannot be cleared.
    pub fn access_first(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<Self, Faulted> {
        let (own, found) = (self.own.into_bits(), first.read(PERF_CNTR_GLOBAL_CTL)?);
        let trials = || {
            first.demand(PERF_CNTR_GLOBAL_CTL, found & !own)?;
            first.demand(PERF_CNTR_GLOBAL_CTL, found | own)
        };
        let tried = first
            .write(PERF_CNTR_GLOBAL_CTL, found)
            .and_then(|()| first.restoring(PERF_CNTR_GLOBAL_CTL, found, trials));
        // Without the registers, the counters need the bits that are there.
        let lacks_bits = Fault::of_value(Access::ReadBack, PERF_CNTR_GLOBAL_CTL, found | own);
        let needs_bits = |fault| if found & own == own { fault } else { first.fail(lacks_bits) };
        tried.and_then(|()| self.access_status(first)).map_err(needs_bits)
    }

    /// Tries what the control register contains, without and with the driver's counters.
    pub fn try_stopped(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
        let own = self.own.into_bits();
        first.trying(PERF_CNTR_GLOBAL_CTL, |found| first.demand(PERF_CNTR_GLOBAL_CTL, found & !own))
    }

    /// Accesses the registers of the status, as [`access_first`](Self::access_first) does.
    fn access_status(self, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<Self, Faulted> {
        first.read(PERF_CNTR_GLOBAL_STATUS)?;
        let clear = |status: GlobalStatus| first.write(PERF_CNTR_GLOBAL_STATUS_CLR, status.into_bits());
        // A spurious interrupt clears no bit.
        clear(GlobalStatus::new())?;
        let without_freeze = self.clearable.with_pmcs_frozen(false);
        match clear(self.clearable) {
            Ok(()) => Ok(self),
            Err(_) => clear(without_freeze).map(|()| Self { clearable: without_freeze, ..self }),
        }
    }

    /// Lets exactly these counters of the driver count; other bits keep the values that were found.
    pub fn let_through(self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        let ours = GlobalCtl::new().with_enabled(low(counters.or(cpu_counters.uppers(counters))));
        let control = cpu_counters.pmu.snapshot.control() & !self.own.into_bits() | ours.into_bits();
        cpu_counters.pmu.snapshot.set_control(control);
        set_control(cpu, control);
    }

    /// Stops the driver's counters. The control register contains `control`.
    #[inline]
    pub fn stop(self, cpu: &impl Cpu, control: u64) {
        set_control(cpu, control & !self.own.into_bits());
    }

    /// Compares the control register, which contains `found`, with what the driver wrote. Returns the value to write:
    /// bits of other programs are as they were found. Returns as well the counters that differ.
    pub fn changes(self, pmu: &PerCpuPmu, found: u64) -> (u64, Option<(CounterSet, Disturbance)>) {
        changes(pmu, self.own.into_bits(), found)
    }

    /// Notes what [changed](Self::changes) in an interrupt. Returns the value to write.
    #[inline]
    pub fn note_changes(self, pmu: &PerCpuPmu, found: u64) -> u64 {
        note_changes(pmu, self.own.into_bits(), found)
    }

    /// Reads the status bits that the driver may clear: overflows, and the bit of frozen counters.
    pub fn status(self, cpu: &impl Cpu) -> GlobalStatus {
        GlobalStatus::from_bits(cpu.rdmsr(PERF_CNTR_GLOBAL_STATUS) & self.clearable.into_bits())
    }

    /// Clears the status of these counters, and unfreezes the counters if they are frozen: otherwise they would
    /// silently not count.
    pub fn thaw(self, cpu: &impl Cpu, counters: CounterSet) {
        clear(cpu, self.clearable.with_overflowed(low(counters)));
    }
}
