//! PerfMonV2: registers over the counters (APM Vol. 2, 13.2.1). A counter counts only while its bit in the control
//! register is set as well, and a status register tells which have overflowed.

use x86_defs::amd::perfmon_v2::{self, GlobalCtl, GlobalStatus};

use crate::cpu::{Cpu, Msr};
use crate::state::{CounterSet, CpuCounters};

const PERF_CNTR_GLOBAL_STATUS: Msr = Msr::new(perfmon_v2::PERF_CNTR_GLOBAL_STATUS);
const PERF_CNTR_GLOBAL_CTL: Msr = Msr::new(perfmon_v2::PERF_CNTR_GLOBAL_CTL);
const PERF_CNTR_GLOBAL_STATUS_CLR: Msr = Msr::new(perfmon_v2::PERF_CNTR_GLOBAL_STATUS_CLR);

/// The registers, as far as they are ours.
#[derive(Debug, Clone, Copy)]
pub struct Global {
    /// What may be cleared of the status.
    clearable: GlobalStatus,
    /// What may be set in the control register.
    own: GlobalCtl,
}

/// Bits of counters; the registers have room for so many.
fn low(counters: CounterSet) -> u16 {
    (counters.bits() & 0xFFFF) as u16
}

/// What the control register holds.
pub fn control(cpu: &impl Cpu) -> u64 {
    cpu.rdmsr(PERF_CNTR_GLOBAL_CTL)
}

/// Writes the control register.
pub fn set_control(cpu: &impl Cpu, control: u64) {
    cpu.wrmsr(PERF_CNTR_GLOBAL_CTL, control);
}

/// Clears a status that was read.
pub fn clear(cpu: &impl Cpu, status: GlobalStatus) {
    cpu.wrmsr(PERF_CNTR_GLOBAL_STATUS_CLR, status.into_bits());
}

impl Global {
    /// For these counters, on a processor where they can be frozen or not. A bit for that must not be written where it
    /// does not exist.
    pub fn new(counters: CounterSet, freeze: bool) -> Self {
        let counters = low(counters);
        Self {
            clearable: GlobalStatus::new().with_overflowed(counters).with_pmcs_frozen(freeze),
            own: GlobalCtl::new().with_enabled(counters),
        }
    }

    /// Lets these counters through and no others of ours; what is not ours stays as it was found.
    pub fn let_through(self, cpu: &impl Cpu, row: CpuCounters<'_>, counters: CounterSet) {
        let ours = GlobalCtl::new().with_enabled(low(counters));
        let control = row.known.saved().global & !self.own.into_bits() | ours.into_bits();
        row.known.set_control(control);
        set_control(cpu, control);
    }

    /// Lets none of ours through, where the control register holds `control`.
    #[inline]
    pub fn stop(self, cpu: &impl Cpu, control: u64) {
        set_control(cpu, control & !self.own.into_bits());
    }

    /// What of the status is ours to clear: overflows, and that somebody froze the counters.
    pub fn status(self, cpu: &impl Cpu) -> GlobalStatus {
        GlobalStatus::from_bits(cpu.rdmsr(PERF_CNTR_GLOBAL_STATUS) & self.clearable.into_bits())
    }

    /// Clears the status of these counters. Were all frozen, they go on: else they would count nothing, and nobody
    /// would know why.
    pub fn thaw(self, cpu: &impl Cpu, counters: CounterSet) {
        clear(cpu, self.clearable.with_overflowed(low(counters)));
    }
}
