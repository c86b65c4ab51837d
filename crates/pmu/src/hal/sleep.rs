//! Sleep: the registers of a processor lose their values.

use core::sync::atomic::Ordering;

use super::{Hal, OverflowStatus, PerCpuPmu};
use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::interface::ProfileInterface;
use crate::state::CounterSet;

impl Hal {
    /// Returns whether the registers of `processor` must not be touched because it [sleeps](Self::save).
    ///
    /// # IRQL
    /// PROFILE_LEVEL on that processor. Elsewhere the answer may be stale.
    #[must_use]
    pub fn is_asleep(&self, processor: ProcessorIndex) -> bool {
        self.held.get(processor.as_usize()).is_some_and(PerCpuPmu::is_asleep)
    }

    /// Prepares the current processor for the loss of its registers: stops its counters, keeps their counts, and leaves
    /// the registers as [`release`](Self::release) does. No register is touched until [`restore`](Self::restore): a
    /// start or a stop in between only changes the state. Returns what [`stop`](Self::stop) returns. Repeated calls
    /// change nothing.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn save(&self, current: CurrentCpu<'_, impl Cpu>) -> OverflowStatus {
        let Some(held) = self.held.get(current.index().as_usize()).filter(|held| !held.is_asleep()) else {
            return OverflowStatus(CounterSet::NONE);
        };
        let active = self.row(current.index()).active.all;
        let overflowed = self.stop(current, active);
        if self.holds(current.index()) {
            self.interface_of(current.index()).release(current.cpu(), held.known.saved());
        }
        held.asleep.store(true, Ordering::Relaxed);
        self.set_active(current.index(), active, true);
        overflowed
    }

    /// Starts the counters that are active by their state again, whether or not the registers were lost. Does nothing
    /// without a [`save`](Self::save) before.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn restore(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(held) = self.held.get(current.index().as_usize())
            && held.asleep.swap(false, Ordering::Relaxed)
            && self.holds(current.index())
        {
            let active = self.row(current.index()).counters(|state| state.active());
            self.set_active(current.index(), active, false);
            held.known.set_saved(self.interface_of(current.index()).initialize(current.cpu()));
            held.set_stale(CounterSet::NONE);
            self.start(current, active);
        }
    }
}
