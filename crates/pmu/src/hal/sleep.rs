//! Sleep: the registers of a processor lose their values.

use super::{Hal, OverflowStatus};
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::interface::ProfileInterface;
use crate::state::{CounterSet, CpuCounters, PerCpuPmu};

impl<E> Hal<E> {
    /// Returns whether the registers of `processor` must not be touched because it [sleeps](Self::save).
    ///
    /// # IRQL
    /// PROFILE_LEVEL on that processor. Elsewhere the answer may be stale.
    #[must_use]
    pub fn is_asleep(&self, processor: ProcessorIndex) -> bool {
        self.pmu(processor).is_some_and(PerCpuPmu::is_asleep)
    }

    /// Prepares the current processor for the loss of its registers: stops its counters, keeps their counts, and leaves
    /// the registers as [`release`](Self::release) does. No register is touched until [`restore`](Self::restore): a
    /// start or a stop in between only changes the state. Returns what [`stop`](Self::stop) returns. Repeated calls
    /// change nothing.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn save(&self, current: CurrentCpu<'_, impl Cpu>) -> OverflowStatus {
        let Some(cpu_counters) = self.find(current.index()).filter(|found| !found.pmu.is_asleep()) else {
            return OverflowStatus(CounterSet::NONE);
        };
        let CpuCounters { pmu, active, .. } = cpu_counters;
        let counters = self.stop_metrics(current, active.all);
        let overflowed = self.stop(current, counters);
        if pmu.is_initialized() {
            self.whole_interface_with(pmu).release(current.cpu(), pmu.snapshot.saved());
        }
        pmu.set_asleep(true);
        if pmu.is_initialized() {
            self.release_extra_registers(current, pmu, false);
        }
        cpu_counters.set_active(active.all, true);
        overflowed
    }

    /// Starts the counters that are active by their state again, whether or not the registers were lost. Does nothing
    /// without a [`save`](Self::save) before.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn restore(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(cpu_counters) = self.find(current.index())
            && cpu_counters.pmu.set_asleep(false)
            && cpu_counters.pmu.is_initialized()
        {
            let CpuCounters { pmu, .. } = cpu_counters;
            pmu.disturbances.interrupt();
            let active = cpu_counters.counters(|state| state.active());
            cpu_counters.set_active(active, false);
            pmu.snapshot.set_saved(self.whole_interface_with(pmu).initialize(current.cpu(), pmu.snapshot.found()));
            pmu.set_stale(CounterSet::NONE);
            self.program_extra_registers(current, active);
            self.start(current, active);
        }
    }
}
