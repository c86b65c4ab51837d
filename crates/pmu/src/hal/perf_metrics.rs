//! Slots and the metrics of the top-down method, which one [unit](crate::interface::emon) counts.

use super::Hal;
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::first_access::{Faulted, FirstAccess, GuardedCpu};
use crate::interface::emon::{Emon, UnitCounts};
use crate::interface::{Enabled, Interface, ProfileInterface};
use crate::state::{CounterSet, CounterState, CpuCounters, PerCpuPmu};

impl<E> Hal<E> {
    /// Returns the interface of a processor with the unit.
    pub(super) fn unit_with(&self, pmu: &PerCpuPmu) -> Option<Emon> {
        match self.interface_with(pmu) {
            Interface::Emon(emon) => Some(emon).filter(|emon| !emon.unit().is_empty()),
            _ => None,
        }
    }

    /// Returns whether a state is that of slots or of a metric.
    #[must_use]
    pub fn is_metric(&self, processor: ProcessorIndex, state: CounterState) -> bool {
        let unit = self.pmu(processor).and_then(|pmu| self.unit_with(pmu)).map(Emon::unit);
        unit.is_some_and(|unit| !self.counters_for(processor, state).and(unit).is_empty())
    }

    /// Adds what slots and metrics have counted since the last reading to their totals. Call it before
    /// [`count`](Self::count), which for them returns the total. Touches no register if none of them counts.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn update_metrics(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(cpu_counters) = self.find(current.index()).filter(|found| !found.active.all.is_empty())
            && let Some(emon) = self.unit_with(cpu_counters.pmu)
            && !cpu_counters.active.all.and(emon.unit()).is_empty()
        {
            add(emon, cpu_counters, emon.read_unit(current.cpu(), cpu_counters.pmu));
        }
    }

    /// As [`stop`](Self::stop), for slots and metrics. Returns the others of `counters`.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    // Not a part of `stop`, which is on the deepest path of the handler: the handler stops sampled counters only.
    pub fn stop_metrics(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) -> CounterSet {
        let Some(cpu_counters) = self.find(current.index()) else { return counters };
        let Some(emon) = self.unit_with(cpu_counters.pmu) else { return counters };
        let (metrics, active) = (counters.and(emon.unit()), cpu_counters.active.all.and(emon.unit()));
        if metrics.is_empty() {
            return counters;
        }
        if !active.and(metrics).is_empty() && active.without(metrics).is_empty() {
            emon.leave_unit(cpu_counters.pmu);
            emon.disable(current.cpu(), cpu_counters, metrics);
            add(emon, cpu_counters, emon.end_unit(current.cpu(), cpu_counters));
        } else {
            self.update_metrics(current);
        }
        cpu_counters.set_active(metrics, false);
        counters.without(metrics)
    }

    /// Returns fixed counter 3 of the current processor if another program has enabled it. One read, or none if the
    /// processor has no metrics, sleeps, or counts them for a session.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn metrics_in_use_elsewhere(&self, current: CurrentCpu<'_, impl Cpu>) -> Option<Enabled> {
        let pmu = self.pmu(current.index()).filter(|pmu| !pmu.is_asleep())?;
        self.unit_with(pmu)?.unit_in_use(current.cpu(), pmu)
    }

    /// Accesses fixed counter 3 and its metrics for the first time. If the processor does not have them, it is known
    /// from then on.
    pub(super) fn access_metrics(
        &self,
        processor: ProcessorIndex,
        first: &FirstAccess<'_, impl GuardedCpu>,
    ) -> Result<(), Faulted> {
        if let Some(pmu) = self.pmu(processor)
            && let Some(emon) = self.unit_with(pmu)
        {
            pmu.snapshot.set_capabilities(emon.access_unit(first)?.capabilities().into_bits());
        }
        Ok(())
    }
}

/// Adds a reading to the totals of the events that count.
fn add(emon: Emon, cpu_counters: CpuCounters<'_>, counts: UnitCounts) {
    for counter in cpu_counters.active.all.and(emon.unit()).iter() {
        if let Some(total) = cpu_counters.total(counter) {
            total.add(emon.unit_count(counts, counter));
        }
    }
}
