//! The first accesses of each processor.

use super::Hal;
use crate::current_cpu::ProcessorIndex;
use crate::debug_store::{self, Modes, Numbering, Place};
use crate::extra::{ExtraRegister, Selector};
use crate::first_access::{Fault, Faulted, FirstAccess, GuardedCpu, Phase, RegisterGroup};
use crate::ibs;
use crate::interface::{Interface, ProfileInterface};
use crate::last_branches::{self, Filter, FoundControls};
use crate::lvt_pmi;
use crate::state::{CounterSet, CounterState, PerCpuPmu};

/// What a processor records by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriedRecording {
    /// Anything, to this place.
    Place(Place),
    /// Branches in these modes.
    Branches(Modes),
    /// The overflows of these counters.
    Precise(Numbering, CounterSet),
}

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
        let result = FirstAccess::perform(cpu, phase, |first| match group {
            RegisterGroup::Counters => {
                let accessed = self.access_counters(processor, first);
                if accessed.is_ok() && phase == Phase::Write {
                    self.try_known(processor, first);
                }
                accessed
            }
            RegisterGroup::LocalApic => lvt_pmi::access_first(first),
            RegisterGroup::DebugStoreFeatures => debug_store::examine_first(first).map(|_| ()),
            RegisterGroup::SaveArea => debug_store::access_save_area(first),
            RegisterGroup::DebugStore => debug_store::access_first(first),
            RegisterGroup::OffcoreResponse => self.access_extra(processor, Selector::OffcoreResponse, first),
            RegisterGroup::LoadLatency => self.access_extra(processor, Selector::LoadLatency, first),
            RegisterGroup::FrontEnd => self.access_extra(processor, Selector::FrontEnd, first),
            RegisterGroup::Metrics => self.access_metrics(processor, first),
            RegisterGroup::LastBranches => last_branches::access_first(first),
            RegisterGroup::IbsOps => ibs::access_first(first, &ibs::control::OPS),
            RegisterGroup::IbsFetches => ibs::access_first(first, &ibs::control::FETCHES),
        });
        if let Some(pmu) = self.pmu(processor) {
            pmu.first_accesses.set(group, phase, result);
        }
        result
    }

    /// Reads again the control registers of the current processor, which is `processor`, that other programs use too,
    /// and tries what has changed since the last time: [`initialize`](Self::initialize) writes back what is found here.
    /// The [first accesses](Self::access_first) were made. Does nothing while the processor is
    /// [initialized](Self::is_initialized).
    ///
    /// # Errors
    /// The fault of a register that the driver cannot do without.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn try_found(&self, processor: ProcessorIndex, cpu: &impl GuardedCpu) -> Result<(), Fault> {
        if let Some(pmu) = self.pmu(processor).filter(|pmu| !pmu.is_initialized()) {
            let (interface, known) = (self.whole_interface_with(pmu), pmu.snapshot.found());
            let tried = FirstAccess::perform(cpu, Phase::Write, |first| interface.try_found(first, known));
            pmu.snapshot.set_found(tried?);
        }
        Ok(())
    }

    /// Tries on the current processor, which is `processor`, what the start of `counter` will write for this state,
    /// except what lets it count, and restores the registers. The counter stands still; others may count. The first
    /// accesses were made.
    ///
    /// # Errors
    /// The fault, or the value that a register does not keep: the counter cannot count the event.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn try_event(
        &self,
        processor: ProcessorIndex,
        counter: u8,
        state: CounterState,
        cpu: &impl GuardedCpu,
    ) -> Result<(), Fault> {
        let Some(cpu_counters) = self.find(processor) else { return Ok(()) };
        FirstAccess::perform(cpu, Phase::Write, |first| {
            if let Interface::Emon(emon) = self.interface_with(cpu_counters.pmu)
                && let Some((register, value)) = self.register_with(emon, state)
            {
                first.try_value(register.msr(), value)?;
            }
            self.whole_interface_with(cpu_counters.pmu).try_event(first, cpu_counters, counter, state)
        })
    }

    /// Tries on the current processor, which is `processor`, what lets it record: where it writes, the modes of
    /// branches, and `precise` counters, which stand still. Restores the registers.
    ///
    /// # Errors
    /// The fault, or the value that a register does not keep.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn try_recording(
        &self,
        processor: ProcessorIndex,
        recorded: TriedRecording,
        cpu: &impl GuardedCpu,
    ) -> Result<(), Fault> {
        FirstAccess::perform(cpu, Phase::Write, |first| match recorded {
            TriedRecording::Place(place) => debug_store::try_place(first, place),
            TriedRecording::Branches(modes) => debug_store::try_trace(first, modes),
            TriedRecording::Precise(numbering, counters) => {
                debug_store::try_pebs(first, numbering, counters, self.accesses(processor, counters))
            }
        })
    }

    /// Tries on the current processor what records its last branches, and restores the registers. Returns what those
    /// contain that others use too.
    ///
    /// # Errors
    /// The fault, or the value that a register does not keep.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn try_last_branches(&self, filter: Filter, cpu: &impl GuardedCpu) -> Result<FoundControls, Fault> {
        FirstAccess::perform(cpu, Phase::Write, |first| last_branches::try_filter(first, filter))
    }

    /// Tries what ends the sampling of ops or fetches on the current processor: what the control register contains,
    /// which is returned.
    ///
    /// # Errors
    /// The fault.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn try_ibs(&self, counted: ibs::Counted, cpu: &impl GuardedCpu) -> Result<u64, Fault> {
        FirstAccess::perform(cpu, Phase::Write, |first| ibs::try_found(first, counted))
    }

    /// Returns the counters of a processor that work as they are set up, as far as its first accesses have shown it.
    #[must_use]
    pub fn present_counters(&self, processor: ProcessorIndex) -> CounterSet {
        let reloaded = self.cpu_counters(processor).counters(|state| state.reloaded());
        self.interface_of(processor).present().without(reloaded.without(self.reloadable(processor)))
    }

    /// Returns whether the counts of a processor include System Management Mode; `None` if only the first accesses can
    /// show it.
    #[must_use]
    pub fn includes_smm(&self, processor: ProcessorIndex) -> Option<bool> {
        let interface = self.interface_of(processor);
        if !interface.may_exclude_smm() {
            return Some(true);
        }
        self.first_accessed(processor, RegisterGroup::Counters, Phase::Write)?.ok()?;
        Some(!interface.excludes_smm() || self.pmu(processor).is_some_and(PerCpuPmu::has_smm))
    }

    /// Accesses the extra registers of this kind that the processor has.
    pub(super) fn access_extra(
        &self,
        processor: ProcessorIndex,
        selector: Selector,
        first: &FirstAccess<'_, impl GuardedCpu>,
    ) -> Result<(), Faulted> {
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
    ) -> Result<(), Faulted> {
        if let Some(pmu) = self.pmu(processor) {
            let interface = self.whole_interface_with(pmu).access_first(first)?;
            pmu.snapshot.set_capabilities(interface.capabilities());
            pmu.snapshot.set_found(interface.found(first)?);
            if let Interface::Emon(emon) = interface {
                pmu.set_reloadable(emon.access_reloads(first, pmu.reloadable()));
            }
        }
        Ok(())
    }
}
