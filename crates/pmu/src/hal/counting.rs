//! Start, stop and count of counters.

use super::disturbance::update;
use super::{Hal, OverflowStatus};
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::interface::ProfileInterface;
use crate::state::{self, CounterSet, Total};

impl<E> Hal<E> {
    /// HalStartProfileInterrupt on the current processor, for counters that were [reserved](Self::reserve) there.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn start(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let Some(cpu_counters) = self.find(current.index()).filter(|_| !counters.is_empty()) else { return };
        if !cpu_counters.pmu.is_asleep() {
            let interface = self.interface_with(cpu_counters.pmu);
            for counter in counters.iter() {
                if let Some(total) = cpu_counters.total(counter) {
                    total.loaded(cpu_counters.get(counter).initial_count(interface.width_of(counter)));
                }
            }
            let stale = cpu_counters.pmu.stale();
            let is_loaded = |counter: &u8| cpu_counters.get(*counter).interrupt();
            let loaded: CounterSet = stale.and(counters).iter().filter(is_loaded).collect();
            if !loaded.is_empty() {
                interface.forget(current.cpu(), loaded);
                cpu_counters.pmu.set_stale(stale.without(loaded));
            }
            if !counters.and(interface.unit()).is_empty() {
                self.update_metrics(current); // those that start now count from now
            }
            interface.enable(current.cpu(), cpu_counters, counters);
        }
        cpu_counters.set_active(counters, true);
    }

    /// HalStopProfileInterrupt on the current processor. Adds the values of the counters to their totals, which remain
    /// for [`total`](Self::total). Returns the counters that had overflowed without being served yet: their interrupt
    /// comes late, or not at all. Not for slots and metrics, which [`stop_metrics`](Self::stop_metrics) stops.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn stop(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) -> OverflowStatus {
        let mut overflowed = CounterSet::NONE;
        let Some(cpu_counters) = self.find(current.index()).filter(|_| !counters.is_empty()) else {
            return OverflowStatus(overflowed);
        };
        if !cpu_counters.pmu.is_asleep() {
            let interface = self.interface_with(cpu_counters.pmu);
            interface.disable(current.cpu(), cpu_counters, counters);
            let mut doubtful = CounterSet::NONE;
            for counter in counters.iter() {
                let state = cpu_counters.get(counter);
                if let (true, Some(total)) = (state.active(), cpu_counters.total(counter)) {
                    let (value, width) = (interface.read(current.cpu(), counter), interface.width_of(counter));
                    update(&interface, cpu_counters, total, counter, value);
                    if !state.interrupt() {
                        doubtful = doubtful.with(counter); // it may have wrapped
                    } else if value & state::top_bit(state::mask(width)) == 0
                        // Loaded again by another counter after its overflow, it does not show it.
                        || state.reloaded() && self.check_overflow(current).0.has(counter)
                    {
                        overflowed = overflowed.with(counter);
                    }
                }
            }
            cpu_counters.pmu.set_stale(cpu_counters.pmu.stale().or(doubtful).or(overflowed));
        }
        cpu_counters.set_active(counters, false);
        OverflowStatus(overflowed)
    }

    /// Returns what a counter of the current processor has counted since its start, with one RDPMC if it runs; slots
    /// and metrics as they were last [updated](Self::update_metrics). A counter that wraps is followed as long as this
    /// is called before it has counted half its range.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn count(&self, current: CurrentCpu<'_, impl Cpu>, counter: u8) -> u64 {
        let mut found = 0;
        self.counts(current, CounterSet::NONE.with(counter), |_, count, _| found = count);
        found
    }

    /// Passes each of `counters` to `each`, with its [`count`](Self::count) and the value that RDPMC returned; 0
    /// without an RDPMC.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn counts(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet, mut each: impl FnMut(u8, u64, u64)) {
        let Some(cpu_counters) = self.find(current.index()) else { return };
        let interface = self.interface_with(cpu_counters.pmu);
        let read = cpu_counters.active.all.without(interface.unit());
        for counter in counters.iter() {
            match cpu_counters.total(counter) {
                Some(total) if read.has(counter) => {
                    let value = interface.read(current.cpu(), counter);
                    each(counter, update(&interface, cpu_counters, total, counter, value), value);
                }
                total => each(counter, total.map_or(0, Total::counted), 0),
            }
        }
    }

    /// Returns what a stopped counter had counted since its start.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn total(&self, processor: ProcessorIndex, counter: u8) -> u64 {
        self.cpu_counters(processor).total(counter).map_or(0, Total::counted)
    }

    /// Returns the value with which a counter of `processor` is loaded at its start and after each overflow.
    #[must_use]
    pub fn initial_count(&self, processor: ProcessorIndex, counter: u8) -> u64 {
        let Some(cpu_counters) = self.find(processor) else { return 0 };
        cpu_counters.get(counter).initial_count(self.interface_with(cpu_counters.pmu).width_of(counter))
    }
}
