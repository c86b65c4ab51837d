//! The registers of the current processor: whether another program uses them, and from their initialization to their
//! release.

use core::sync::atomic::Ordering;

use super::Hal;
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::debug_store::Facilities;
use crate::interface::{Enabled, Interface, ProfileInterface};
use crate::state::CounterSet;

impl Hal {
    /// Reads the capabilities of the current processor, which may differ from those of the boot processor. Touches no
    /// register. Does nothing while the processor is [held](Self::holds).
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn probe(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(held) = self.held.get(current.index().as_usize())
            && !held.by_us.load(Ordering::Relaxed)
        {
            held.known.set_capabilities(Interface::new(self.selection.interface, current.cpu()).capabilities());
        }
    }

    /// Stores which counters of `processor` record which events precisely, as [`debug_store`](crate::debug_store) found
    /// them.
    pub fn probe_precise(&self, processor: ProcessorIndex, Facilities { counters, events, .. }: Facilities) {
        if let Some(held) = self.held.get(processor.as_usize()) {
            held.known.set_capabilities(self.interface_of(processor).with_precise(counters, events).capabilities());
        }
    }

    /// Returns a counter of the current processor that another program has enabled. Reads one register per counter up
    /// to that one. Reads none if the processor is held or asleep.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn in_use_elsewhere(&self, current: CurrentCpu<'_, impl Cpu>) -> Option<Enabled> {
        let held = self.held.get(current.index().as_usize())?;
        let is_open = !held.by_us.load(Ordering::Relaxed) && !held.is_asleep();
        is_open.then(|| self.interface_of(current.index()).enabled(current.cpu())).flatten()
    }

    /// InitializeProfiling on the current processor. Returns whether its counters work; if not, none may be started
    /// there. If the processor is asleep, [`restore`](Self::restore) initializes it.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn initialize(&self, current: CurrentCpu<'_, impl Cpu>) -> bool {
        let Some(held) = self.held.get(current.index().as_usize()) else { return false };
        let is_first = !held.by_us.swap(true, Ordering::Relaxed);
        if held.is_asleep() {
            return true;
        }
        let interface = self.interface_of(current.index()).examined(current.cpu());
        held.known.set_capabilities(interface.capabilities());
        let saved = interface.initialize(current.cpu());
        if is_first {
            held.known.set_saved(saved);
        }
        held.set_stale(CounterSet::NONE);
        interface.readback_ok(current.cpu())
    }

    /// Returns whether the driver holds the counters of `processor`: from [`initialize`](Self::initialize) to
    /// [`release`](Self::release).
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn holds(&self, processor: ProcessorIndex) -> bool {
        self.held.get(processor.as_usize()).is_some_and(|held| held.by_us.load(Ordering::Relaxed))
    }

    /// Restores what [`initialize`](Self::initialize) found on the current processor, with the select registers
    /// cleared. Does nothing if the processor is not held.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn release(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(held) = self.held.get(current.index().as_usize())
            && held.by_us.swap(false, Ordering::Relaxed)
            && !held.is_asleep()
        {
            self.interface_of(current.index()).release(current.cpu(), held.known.saved());
        }
    }
}
