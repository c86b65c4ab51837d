//! Registers that another program changed: found, and written again.

use pmu::state::CounterSet;
use pmu::{Cpu, CurrentCpu};

use super::Sampler;
use super::per_cpu::PerCpuSampling;
use super::tracing::Unsampled;
use crate::time::Ticks;

impl Sampler {
    /// Compares the registers of the active counters of the current processor with what the driver wrote. The HAL
    /// functions keep what is found, until the sessions [take](pmu::Hal::take_disturbances) it.
    ///
    /// A write of a control register removes the traces of a change. Therefore this comes before every such write, and
    /// before counts are reported.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn compare(&self, current: CurrentCpu<'_, impl Cpu>, now: Ticks) {
        let _ = self.hal.compare(current, now.0);
    }

    /// As [`compare`](Self::compare), and starts the disturbed counters again, so that they go on counting and
    /// sampling. Their overflows that were not served yet are counted as lost. Registers of other programs are not
    /// touched, nor is IA32_DEBUGCTL, which no program can reserve.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn repair(&self, current: CurrentCpu<'_, impl Cpu>, now: Ticks) {
        let disturbed = self.hal.compare(current, now.0);
        if let Some(per_cpu) = self.per_cpu(current.index()).filter(|_| !disturbed.is_empty()) {
            self.restart(current, per_cpu, disturbed, now);
        }
    }

    /// Starts disturbed counters again.
    #[cold]
    fn restart(&self, current: CurrentCpu<'_, impl Cpu>, per_cpu: &PerCpuSampling, disturbed: CounterSet, now: Ticks) {
        let active = self.hal.cpu_counters(current.index()).active.all;
        let counters = disturbed.and(active);
        if counters.is_empty() {
            return self.hal.confine(current); // a stopped counter was started
        }
        let late = self.stop(current, per_cpu, self.hal.stop_metrics(current, counters), now);
        per_cpu.count_overflows(late, Unsampled::Lost);
        if counters == active {
            // A freeze concerns all counters. The status of other counters would be an overflow that still waits.
            self.hal.acknowledge(current);
        }
        self.start(current, counters);
    }
}
