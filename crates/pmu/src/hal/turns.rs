//! Which events may take turns on a counter.

use super::Hal;
use crate::current_cpu::ProcessorIndex;
use crate::interface::Interface;
use crate::placement::Wanted;

impl<E> Hal<E> {
    /// Returns whether a [narrowed](Self::narrowed) event can share its counter with others, one after the other. It
    /// cannot if it needs an extra register, which keeps one value, or if it is of slots or a metric, which take no
    /// counter from others. Nor can it where an event limits what other counters may count: the counters of the other
    /// thread, or those of NetBurst that share a register.
    #[must_use]
    pub fn may_take_turns(&self, processor: ProcessorIndex, Wanted { state, within }: Wanted) -> bool {
        match self.interface_of(processor) {
            Interface::Emon(emon) => {
                self.events.extra_of(state).is_none()
                    && !self.disturbs_other_thread(emon, state)
                    && within.and(emon.unit()).is_empty()
            }
            Interface::NetBurst(_) => false,
            _ => true,
        }
    }
}
