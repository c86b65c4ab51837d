//! The first accesses of each processor.

use super::Hal;
use crate::current_cpu::ProcessorIndex;
use crate::debug_store;
use crate::first_access::{Fault, FirstAccess, GuardedCpu, Phase, RegisterGroup};
use crate::lvt_pmi;

impl<E> Hal<E> {
    /// Returns the result of the first accesses to `group` on `processor`, if they were made. It is remembered as long
    /// as the driver is loaded.
    #[must_use]
    pub fn first_accessed(
        &self,
        processor: ProcessorIndex,
        group: RegisterGroup,
        phase: Phase,
    ) -> Option<Result<(), Fault>> {
        self.pmu(processor)?.first_accesses.get(group, phase)
    }

    /// Accesses the registers of `group` on the current processor, which is `processor`, for the first time. Stops at
    /// the first fault. The processor must not be [initialized](Self::is_initialized). The caller holds the planning
    /// lock.
    ///
    /// # Errors
    /// The fault of a register that the driver cannot do without.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn access_first(
        &self,
        processor: ProcessorIndex,
        group: RegisterGroup,
        phase: Phase,
        cpu: &impl GuardedCpu,
    ) -> Result<(), Fault> {
        let first = FirstAccess::new(cpu, phase);
        let result = match group {
            RegisterGroup::Counters => self.access_counters(processor, &first),
            RegisterGroup::LocalApic => lvt_pmi::access_first(&first),
            RegisterGroup::DebugStoreFeatures => debug_store::examine_first(&first).map(|_| ()),
            RegisterGroup::SaveArea => debug_store::access_save_area(&first),
            RegisterGroup::DebugStore => debug_store::access_first(&first),
        };
        if let Some(pmu) = self.pmu(processor) {
            pmu.first_accesses.set(group, phase, result);
        }
        result
    }

    fn access_counters(
        &self,
        processor: ProcessorIndex,
        first: &FirstAccess<'_, impl GuardedCpu>,
    ) -> Result<(), Fault> {
        if let Some(pmu) = self.pmu(processor) {
            let interface = self.whole_interface_with(pmu).access_first(first)?;
            pmu.snapshot.set_capabilities(interface.capabilities());
        }
        Ok(())
    }
}
