//! What other programs changed in IA32_PERF_GLOBAL_CTRL.

use super::{Emon, IA32_PERF_GLOBAL_CTRL};
use crate::cpu::Cpu;
use crate::disturbance::Disturbance;
use crate::state::{CounterSet, PerCpuPmu};

impl Emon {
    /// Compares IA32_PERF_GLOBAL_CTRL, which contains `found`, with what the driver wrote. Returns the value to write:
    /// bits outside the interface are as they were found. Returns as well the counters that differ.
    pub(super) fn changes(self, pmu: &PerCpuPmu, found: u64) -> (u64, Option<(CounterSet, Disturbance)>) {
        let own = self.capabilities.own();
        let kept = own | self.unit_control(pmu);
        let control = found & !kept | pmu.snapshot.control() & kept;
        pmu.snapshot.set_control(control);
        let counters = self.counters_in((found ^ control) & own).or(self.unit_in(pmu, found ^ control));
        (control, Disturbance::of(IA32_PERF_GLOBAL_CTRL, found, control).map(|disturbance| (counters, disturbance)))
    }

    /// Notes what [changed](Self::changes) in an interrupt. Returns the value to write. Takes no `CpuCounters`, which
    /// would be copied to the stack of the handler.
    #[cold]
    #[inline(never)]
    pub(super) fn note_changes(self, pmu: &PerCpuPmu, found: u64) -> u64 {
        let (control, changed) = self.changes(pmu, found);
        pmu.disturbances.note_found(changed);
        control
    }

    /// Reads IA32_PERF_GLOBAL_CTRL and notes what changed. Returns the value to write. Not a part of its caller, which
    /// is on the deepest path of the handler.
    #[inline(never)]
    pub(super) fn checked_control(self, cpu: &impl Cpu, pmu: &PerCpuPmu) -> u64 {
        let (control, found) = (pmu.snapshot.control(), cpu.rdmsr(IA32_PERF_GLOBAL_CTRL));
        if found == control { control } else { self.note_changes(pmu, found) }
    }
}
