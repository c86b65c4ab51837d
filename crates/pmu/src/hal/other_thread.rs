//! Counters that the two threads of a core must not use at the same time
//! ([`Action::KeepOtherThreadFree`](crate::errata::workarounds::Action::KeepOtherThreadFree)). The caller holds the
//! planning lock.

use core::sync::atomic::Ordering;

use super::Hal;
use crate::cpu::Cpuid;
use crate::current_cpu::ProcessorIndex;
use crate::interface::Interface;
use crate::interface::emon::Emon;
use crate::state::{CounterSet, CounterState, PerCpuPmu};
use crate::topology;

impl<E> Hal<E> {
    /// Returns another processor of the same core, if events of the two disturb each other or share registers.
    #[must_use]
    pub fn other_thread(&self, processor: ProcessorIndex) -> Option<ProcessorIndex> {
        let core = self.pmu(processor)?.core()?;
        let mut all = ProcessorIndex::first(u32::MAX).zip(self.cpus.iter());
        all.find(|(index, other)| *index != processor && other.pmu.core() == Some(core)).map(|(index, _)| index)
    }

    /// Returns the counters of `processor` that can count what `state` states without disturbing `other`, the
    /// [other thread](Self::other_thread) of the core, or being disturbed by it.
    #[must_use]
    pub fn undisturbed(
        &self,
        processor: ProcessorIndex,
        other: Option<ProcessorIndex>,
        state: CounterState,
    ) -> CounterSet {
        let all = CounterSet::first(CounterSet::MOST);
        let Some(other) = other else { return all };
        let Interface::Emon(emon) = self.interface_of(processor) else { return all };
        let disturbs = |state| self.disturbs_other_thread(emon, state);
        let is_exclusive = disturbs(state);
        let taken = self.cpu_counters(other).counters(|there| !there.is_free() && (is_exclusive || disturbs(there)));
        all.without(taken.and(CounterSet::from_bits(emon.capabilities().general().into())))
    }

    /// Returns whether an event disturbs the counters of the other thread.
    pub(super) fn disturbs_other_thread(&self, emon: Emon, state: CounterState) -> bool {
        self.events.source_of(state).is_some_and(|source| emon.disturbs_other_thread(&source))
    }

    /// Stores the core of the current processor, if threads of a core disturb each other or share registers.
    pub(super) fn probe_core(&self, pmu: &PerCpuPmu, cpu: &impl Cpuid) {
        let is_related = match self.interface_with(pmu) {
            Interface::Emon(emon) => {
                let capabilities = emon.capabilities();
                capabilities.disturbs_other_thread() || capabilities.shares_extra_registers()
            }
            _ => false,
        };
        pmu.set_core(is_related.then(|| topology::core_with_threads(cpu)).flatten());
    }
}

impl PerCpuPmu {
    /// Returns the ID of the core, where threads of a core disturb each other or share registers.
    fn core(&self) -> Option<u32> {
        let stored = self.core.load(Ordering::Relaxed).checked_sub(1)?;
        u32::try_from(stored).ok()
    }

    /// Sets that value.
    fn set_core(&self, core: Option<u32>) {
        self.core.store(core.map_or(0, |core| u64::from(core) + 1), Ordering::Relaxed);
    }
}
