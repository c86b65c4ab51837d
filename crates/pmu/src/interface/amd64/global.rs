//! PerfMonV2: the global registers (APM Vol. 2, 13.2.1). A counter counts only while its bit in the control register is
//! set too, and a status register reports which counters overflowed.

use x86_defs::amd::perfmon_v2::{self, GlobalCtl, GlobalStatus};

use crate::cpu::{Cpu, Msr};
use crate::first_access::{Fault, FirstAccess, GuardedCpu};
use crate::state::{CounterSet, CpuCounters};

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

/// Accesses every register for the first time.
pub fn access_first(first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Fault> {
    first.read_write(PERF_CNTR_GLOBAL_CTL)?;
    first.read(PERF_CNTR_GLOBAL_STATUS)?;
    first.write_zero(PERF_CNTR_GLOBAL_STATUS_CLR)
}

/// Reads the control register.
pub fn control(cpu: &impl Cpu) -> u64 {
    cpu.rdmsr(PERF_CNTR_GLOBAL_CTL)
}

/// Writes the control register.
pub fn set_control(cpu: &impl Cpu, control: u64) {
    cpu.wrmsr(PERF_CNTR_GLOBAL_CTL, control);
}

/// Clears the bits of a status that was read.
pub fn clear(cpu: &impl Cpu, status: GlobalStatus) {
    cpu.wrmsr(PERF_CNTR_GLOBAL_STATUS_CLR, status.into_bits());
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

    /// Lets exactly these counters of the driver count; other bits keep the values that were found.
    pub fn let_through(self, cpu: &impl Cpu, cpu_counters: CpuCounters<'_>, counters: CounterSet) {
        let ours = GlobalCtl::new().with_enabled(low(counters.or(cpu_counters.uppers(counters))));
        let control = cpu_counters.pmu.snapshot.saved().global & !self.own.into_bits() | ours.into_bits();
        cpu_counters.pmu.snapshot.set_control(control);
        set_control(cpu, control);
    }

    /// Stops the driver's counters. The control register contains `control`.
    #[inline]
    pub fn stop(self, cpu: &impl Cpu, control: u64) {
        set_control(cpu, control & !self.own.into_bits());
    }

    /// Returns whether another program has started or stopped counters of the driver: the control register does not
    /// contain `control`. One read.
    pub fn is_changed(self, cpu: &impl Cpu, control: u64) -> bool {
        (cpu.rdmsr(PERF_CNTR_GLOBAL_CTL) ^ control) & self.own.into_bits() != 0
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
