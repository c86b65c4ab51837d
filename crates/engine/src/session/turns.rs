//! The events of a session that take turns on the counters of a processor.

use pmu::{Cpu, CurrentCpu, ProcessorIndex};
use sample_ring::Slot;

use super::Session;
use crate::boxed::Boxed;
use crate::event::EventFilter;
use crate::rotation::Rotation;
use crate::sampler::Sampler;
use crate::time::Ticks;

impl Session {
    /// Returns whether it has a rotation on a processor.
    pub fn rotates_on(&self, processor: ProcessorIndex) -> bool {
        self.rotation_on(processor).is_some()
    }

    pub(super) fn rotation_on(&self, processor: ProcessorIndex) -> Option<&Slot<Boxed<Rotation>>> {
        let index = self.rotations.binary_search_by_key(&processor, |(number, _)| *number).ok()?;
        self.rotations.get(index).map(|(_, slot)| slot)
    }

    /// Updates the counts of the events that take turns on the current processor.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn update_turns(&self, current: CurrentCpu<'_, impl Cpu>, sampler: &Sampler, now: Ticks) {
        if self.rotates_on(current.index()) {
            sampler.with_rotation(current, self.tag, |rotation, hal| {
                rotation.update(current, hal, now);
                self.take_turns(current.index(), rotation);
            });
        }
    }

    fn take_turns(&self, processor: ProcessorIndex, rotation: &Rotation) {
        for counted in rotation.events() {
            if let Some((_, _, count)) = self.on(processor).nth(counted.turn.event) {
                count.update_turns(counted);
            }
        }
    }

    /// Stops the addressed events that take turns on the current processor.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub(super) fn end_turns(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        events: EventFilter,
        sampler: &Sampler,
        now: Ticks,
    ) {
        let Some(slot) = self.rotation_on(current.index()) else { return };
        let is_meant = |index: usize| self.events.get(index).is_some_and(|event| event.is_running(events));
        sampler.with_rotation(current, self.tag, |rotation, hal| {
            rotation.stop(current, hal, now, is_meant);
            self.take_turns(current.index(), rotation);
        });
        if let Some(rotation) = sampler.end_rotation(current, self.tag) {
            // The slot is empty since the rotation was taken. Memory cannot be freed here.
            core::mem::forget(slot.try_put(rotation));
        }
    }
}
