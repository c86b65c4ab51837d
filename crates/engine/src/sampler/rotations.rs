//! Rotation of events on the current processor.

use pmu::{Cpu, CurrentCpu};

use super::{Hal, Sampler};
use crate::boxed::Boxed;
use crate::rotation::Rotation;
use crate::time::Ticks;

impl Sampler {
    /// Begins the rotation of a session on the current processor.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn begin_rotation(&self, current: CurrentCpu<'_, impl Cpu>, mut rotation: Boxed<Rotation>, now: Ticks) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return core::mem::forget(rotation) };
        rotation.begin(current, &self.hal, now);
        // A slot is empty: the planner limits the sessions that rotate. Memory cannot be freed here.
        core::mem::forget(per_cpu.rotations().try_fold(rotation, |rotation, slot| slot.try_put(rotation).err()));
    }

    /// Runs `work` with the rotation of the session with the tag `owner`, if it has one on the current processor, and
    /// the HAL functions for its counters.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn with_rotation<R>(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        owner: u16,
        mut work: impl FnMut(&mut Rotation, &Hal) -> R,
    ) -> Option<R> {
        let slots = self.per_cpu(current.index())?.rotations();
        let mut with = |rotation: &mut Boxed<Rotation>| (rotation.owner() == owner).then(|| work(rotation, &self.hal));
        slots.into_iter().find_map(|slot| slot.try_with(&mut with).flatten())
    }

    /// Takes the rotation of a session from the current processor, after all its events were stopped.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn end_rotation(&self, current: CurrentCpu<'_, impl Cpu>, owner: u16) -> Option<Boxed<Rotation>> {
        let is_it = |rotation: &mut Boxed<Rotation>| rotation.owner() == owner && rotation.is_over();
        let mut slots = self.per_cpu(current.index())?.rotations();
        slots.find(|slot| slot.try_with(is_it) == Some(true))?.try_take()
    }

    /// Begins the next round of each rotation of the current processor whose round is over, at an expiry of its timer.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    // Never inlined: it would cost the path of the timer more stack.
    #[inline(never)]
    pub fn rotate(&self, current: CurrentCpu<'_, impl Cpu>, time: impl Fn() -> Ticks) {
        let Some(per_cpu) = self.per_cpu(current.index()).filter(|_| !self.hal.is_asleep(current.index())) else {
            return;
        };
        if !per_cpu.rotations().any(|slot| slot.try_with(|it| it.is_due(time(), self.clock)) == Some(true)) {
            return;
        }
        // The next round writes the registers, and removes the traces of a change. What another program stopped counts
        // again before, as at a start.
        self.repair(current, time());
        for slot in per_cpu.rotations() {
            slot.try_with(|rotation| {
                if rotation.is_due(time(), self.clock) {
                    rotation.rotate(current, &self.hal, &time, self.clock);
                }
            });
        }
    }

    /// Runs `work` with every rotation of the current processor.
    pub(super) fn with_rotations(&self, current: CurrentCpu<'_, impl Cpu>, mut work: impl FnMut(&mut Rotation)) {
        let Some(per_cpu) = self.per_cpu(current.index()) else { return };
        for slot in per_cpu.rotations() {
            slot.try_with(|rotation| work(rotation));
        }
    }
}
