//! The first accesses of each processor.

use super::Hal;
use crate::current_cpu::ProcessorIndex;
use crate::debug_store;
use crate::extra::{ExtraRegister, Selector};
use crate::first_access::{Fault, FirstAccess, GuardedCpu, Phase, RegisterGroup};
use crate::interface::Interface;
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
            RegisterGroup::OffcoreResponse => self.access_extra(processor, Selector::OffcoreResponse, &first),
            RegisterGroup::LoadLatency => self.access_extra(processor, Selector::LoadLatency, &first),
            RegisterGroup::FrontEnd => self.access_extra(processor, Selector::FrontEnd, &first),
            RegisterGroup::Metrics => self.access_metrics(processor, &first),
        };
        if let Some(pmu) = self.pmu(processor) {
            pmu.first_accesses.set(group, phase, result);
        }
        result
    }

    /// Accesses the extra registers of this kind that the processor has.
    pub(super) fn access_extra(
        &self,
        processor: ProcessorIndex,
        selector: Selector,
        first: &FirstAccess<'_, impl GuardedCpu>,
    ) -> Result<(), Fault> {
        let Interface::Emon(emon) = self.interface_of(processor) else { return Ok(()) };
        let events = emon.capabilities().extra_events();
        let has = |register: &ExtraRegister| events.iter().any(|event| event.register == *register);
        let registers = ExtraRegister::ALL.into_iter().filter(|register| register.selector() == selector);
        for register in registers.filter(has) {
            first.read_write(register.msr())?;
        }
        Ok(())
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
