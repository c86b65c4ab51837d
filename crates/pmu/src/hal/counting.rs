//! Start, stop and count of counters.

use super::{Hal, OverflowStatus};
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::interface::ProfileInterface;
use crate::state::{self, CounterSet, Total};

impl Hal {
    /// HalStartProfileInterrupt on the current processor, for counters that were [reserved](Self::reserve) there.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn start(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let row = self.row(current.index());
        if self.is_asleep(current.index()) {
            self.set_active(current.index(), counters, true);
        } else if !counters.is_empty() {
            let interface = self.interface.with_capabilities(row.known.capabilities());
            for counter in counters.iter() {
                if let Some(total) = row.total(counter) {
                    total.loaded(self.initial_count(current.index(), counter));
                }
            }
            if let Some(held) = self.held.get(current.index().as_usize()) {
                let stale = held.stale().and(counters).and(row.counters(|state| state.interrupt()));
                if !stale.is_empty() {
                    interface.forget(current.cpu(), stale);
                    held.set_stale(held.stale().without(stale));
                }
            }
            interface.enable(current.cpu(), row, counters);
            self.set_active(current.index(), counters, true);
        }
    }

    /// HalStopProfileInterrupt on the current processor. Adds the values of the counters to their totals, which remain
    /// for [`total`](Self::total). Returns the counters that had overflowed without being served yet: their interrupt
    /// comes late, or not at all.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn stop(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) -> OverflowStatus {
        let row = self.row(current.index());
        let mut overflowed = CounterSet::NONE;
        if self.is_asleep(current.index()) {
            self.set_active(current.index(), counters, false);
        } else if !counters.is_empty() {
            let interface = self.interface.with_capabilities(row.known.capabilities());
            interface.disable(current.cpu(), row, counters);
            let mut doubtful = CounterSet::NONE;
            for counter in counters.iter() {
                let state = row.get(counter);
                if let (true, Some(total)) = (state.active(), row.total(counter)) {
                    let (value, width) = (interface.read(current.cpu(), counter), interface.width_of(counter));
                    if state.precise() {
                        total.follow(value, 64_u8.saturating_sub(width));
                    } else {
                        total.update(value, width);
                    }
                    if !state.interrupt() {
                        doubtful = doubtful.with(counter); // it may have wrapped
                    } else if value & state::top_bit(state::mask(width)) == 0 {
                        overflowed = overflowed.with(counter);
                    }
                }
            }
            if let Some(held) = self.held.get(current.index().as_usize()) {
                held.set_stale(held.stale().or(doubtful).or(overflowed));
            }
            self.set_active(current.index(), counters, false);
        }
        OverflowStatus(overflowed)
    }

    pub(super) fn set_active(&self, processor: ProcessorIndex, counters: CounterSet, active: bool) {
        let row = self.row(processor);
        for counter in counters.iter() {
            row.set(counter, row.get(counter).with_active(active));
        }
        if let Some(held) = self.held.get(processor.as_usize()) {
            if held.is_asleep() {
                held.active.clear();
            } else {
                held.active.update(row.cells);
            }
        }
    }

    /// Returns what a counter of the current processor has counted since its start, with one RDPMC if it runs. A
    /// counter that wraps is followed as long as this is called at least once per wrap.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn count(&self, current: CurrentCpu<'_, impl Cpu>, counter: u8) -> u64 {
        let row = self.row(current.index());
        let interface = self.interface.with_capabilities(row.known.capabilities());
        match row.total(counter) {
            Some(total) if row.active.all.has(counter) => {
                let (value, width) = (interface.read(current.cpu(), counter), interface.width_of(counter));
                if row.get(counter).precise() {
                    total.follow(value, 64_u8.saturating_sub(width))
                } else {
                    total.update(value, width)
                }
            }
            total => total.map_or(0, Total::counted),
        }
    }

    /// Returns what a stopped counter had counted since its start.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn total(&self, processor: ProcessorIndex, counter: u8) -> u64 {
        self.row(processor).total(counter).map_or(0, Total::counted)
    }

    /// Returns the value with which a counter of `processor` is loaded at its start and after each overflow.
    #[must_use]
    pub fn initial_count(&self, processor: ProcessorIndex, counter: u8) -> u64 {
        self.row(processor).get(counter).initial_count(self.interface_of(processor).width_of(counter))
    }
}
