//! The registers of the current processor: whether another program uses them, and from their initialization to their
//! release.

use super::Hal;
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::debug_store::Facilities;
use crate::interface::{Enabled, Interface, ProfileInterface};
use crate::state::{CounterSet, PerCpuPmu};

impl<E> Hal<E> {
    /// Reads the capabilities and the core type of the current processor, which may differ from those of the boot
    /// processor. Touches no register. Does nothing while the processor is [initialized](Self::is_initialized).
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn probe(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(pmu) = self.pmu(current.index())
            && !pmu.is_initialized()
        {
            pmu.snapshot.set_capabilities(Interface::new(self.boot.selection.interface, current.cpu()).capabilities());
            if let Interface::Emon(emon) = self.whole_interface_with(pmu) {
                pmu.set_reloadable(emon.enumerated_reloads(current.cpu()));
            }
            self.probe_core_type(pmu, current.cpu());
            self.probe_core(pmu, current.cpu());
        }
    }

    /// Stores which counters of `processor` record precisely, as [`debug_store`](crate::debug_store) found them.
    /// Returns the index of its first fixed counter.
    pub fn probe_precise(&self, processor: ProcessorIndex, Facilities { recorders, .. }: Facilities) -> u8 {
        let Some(pmu) = self.pmu(processor) else { return 0 };
        let interface = self.whole_interface_with(pmu).with_recorders(recorders);
        pmu.snapshot.set_capabilities(interface.capabilities());
        interface.first_fixed()
    }

    /// Returns a counter of the current processor that another program has enabled. Reads one register per counter up
    /// to that one. Reads none if the processor is initialized or asleep.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn in_use_elsewhere(&self, current: CurrentCpu<'_, impl Cpu>) -> Option<Enabled> {
        let pmu = self.pmu(current.index()).filter(|pmu| !pmu.is_initialized() && !pmu.is_asleep())?;
        self.interface_with(pmu).enabled(current.cpu())
    }

    /// InitializeProfiling on the current processor. Returns whether its counters work; if not, none may be started
    /// there. The [first accesses](Self::access_first) were made. If the processor is asleep,
    /// [`restore`](Self::restore) initializes it.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn initialize(&self, current: CurrentCpu<'_, impl Cpu>) -> bool {
        let Some(pmu) = self.pmu(current.index()) else { return false };
        let is_first = !pmu.set_initialized(true);
        if pmu.is_asleep() {
            return true;
        }
        let interface = self.whole_interface_with(pmu);
        pmu.clear_smm();
        let saved = interface.initialize(current.cpu(), pmu.snapshot.found());
        if is_first {
            pmu.snapshot.set_saved(saved);
        }
        pmu.set_stale(CounterSet::NONE);
        interface.readback_ok(current.cpu())
    }

    /// Returns whether the driver uses the registers of `processor`: from [`initialize`](Self::initialize) to
    /// [`release`](Self::release).
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn is_initialized(&self, processor: ProcessorIndex) -> bool {
        self.pmu(processor).is_some_and(PerCpuPmu::is_initialized)
    }

    /// Restores what [`initialize`](Self::initialize) found on the current processor, with the select registers
    /// cleared. Does nothing if the processor is not [initialized](Self::is_initialized).
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn release(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(pmu) = self.pmu(current.index())
            && pmu.set_initialized(false)
        {
            if !pmu.is_asleep() {
                self.whole_interface_with(pmu).release(current.cpu(), pmu.snapshot.saved());
            }
            self.release_extra_registers(current, pmu, true);
        }
    }
}
