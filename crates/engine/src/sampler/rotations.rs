//! Rotation of events on the current processor.

use pmu::{Cpu, CurrentCpu};

use super::Sampler;
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
        rotation.begin(current, &self.hal, per_cpu.since_woken(now));
        // A slot is empty: the planner limits the sessions that rotate. Memory cannot be freed here.
        core::mem::forget(per_cpu.rotations().try_fold(rotation, |rotation, slot| slot.try_put(rotation).err()));
    }

    /// Runs `work` with the rotation of the session with the tag `owner`, if it has one on the current processor.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn with_rotation<R>(
        &self,
        current: CurrentCpu<'_, impl Cpu>,
        owner: u16,
        mut work: impl FnMut(&mut Rotation) -> R,
    ) -> Option<R> {
        let slots = self.per_cpu(current.index())?.rotations();
        let mut with = |rotation: &mut Boxed<Rotation>| (rotation.owner() == owner).then(|| work(rotation));
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

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use pmu::state::{self, CounterState};
    use pmu::{CurrentCpu, Options, ProcessorIndex};

    use super::*;
    use crate::rotation::{Turn, TurnCount};
    use crate::sampler::Hal;
    use crate::sampler::counting_cpu::CountingCpu;

    const OWNER: u16 = 1;

    /// The clock is read before a processor is interrupted, and the machine can sleep between the two.
    #[test]
    fn a_clock_that_was_read_before_a_sleep_adds_none_of_it() {
        for late in ["begin", "update"] {
            let cpu = CountingCpu::default();
            let hal = Hal::with_states(&cpu, Options::default(), 1, 0, state::allocate).unwrap();
            let (sampler, current) = (Sampler::new(hal, 1_000), CurrentCpu::new(&cpu, ProcessorIndex::BOOT));
            let turn = Turn { event: 0, round: 0, counter: 0, state: CounterState::held_by(OWNER) };
            let rotation = Boxed::new(Rotation::new(OWNER, 40_000, Vec::from([TurnCount::new(turn)]))).unwrap();
            let sleep = || {
                sampler.fall_asleep(current, Ticks(110));
                sampler.wake(current, Ticks(9_110), Ticks(9_000));
            };
            if late == "begin" {
                sleep();
                sampler.begin_rotation(current, rotation, Ticks(100));
            } else {
                sampler.begin_rotation(current, rotation, Ticks(100));
                sleep();
                sampler.with_rotation(current, OWNER, |rotation| rotation.update(current, &sampler.hal, Ticks(105)));
            }
            let running = sampler.with_rotation(current, OWNER, |rotation| {
                rotation.update(current, &sampler.hal, Ticks(9_130));
                rotation.events().iter().map(|event| event.running).collect::<Vec<_>>()
            });
            let before = if late == "begin" { 0 } else { 10 };
            assert_eq!(running, Some(Vec::from([Ticks(before + 20)])), "{late}");
        }
    }
}
