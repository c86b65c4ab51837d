//! The registers of a processor as they are: all that the first accesses read, without a write.

use super::Hal;
use crate::current_cpu::ProcessorIndex;
use crate::debug_store;
use crate::extra::Selector;
use crate::first_access::{Faulted, FirstAccess, GuardedCpu, Reading};
use crate::interface::Interface;
use crate::lvt_pmi;

impl<E> Hal<E> {
    /// Reads every register of the current processor, which is `processor`, that a session can touch, and every
    /// counter; `note` receives them in the order of the accesses, some more than once. None is written, and the
    /// results of the [first accesses](Self::access_first) stay as they are. Where CPUID does not
    /// [enumerate](super::BootProcessor::is_enumerated) the counters, only the registers of the local APIC are read.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL.
    pub fn read_registers(&self, processor: ProcessorIndex, cpu: &impl GuardedCpu, note: &dyn Fn(Reading)) {
        // Every fault is noted, and none is returned.
        let _ = FirstAccess::note(cpu, note, |first| self.read_all(processor, first));
    }

    fn read_all(&self, processor: ProcessorIndex, first: &FirstAccess<'_, impl GuardedCpu>) -> Result<(), Faulted> {
        // A local APIC that is disabled hides no other register.
        let _ = lvt_pmi::access_first(first);
        let Some(pmu) = self.pmu(processor).filter(|_| self.boot.is_enumerated) else { return Ok(()) };
        if let Interface::Emon(emon) = self.whole_interface_with(pmu).access_first(first)? {
            emon.access_reloads(first, pmu.reloadable());
        }
        for selector in Selector::ALL {
            self.access_extra(processor, selector, first)?;
        }
        if let Some(emon) = self.unit_with(pmu) {
            emon.access_unit(first)?;
        }
        debug_store::access_first(first)
    }
}
