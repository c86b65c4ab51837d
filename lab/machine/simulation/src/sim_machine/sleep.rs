//! Sleep and wake of a machine.

use engine::{Engine, Platform, Ticks};

use super::SimMachine;
use crate::cpu::ModelCpu;

impl SimMachine {
    /// Puts the machine to sleep: notifies the engine, then takes the power from the processors, one after the other.
    /// Until [`wake`](Self::wake), a register access panics. Repeated calls have no effect.
    pub fn fall_asleep(&self, engine: &Engine<&Self>) {
        if self.is_asleep() {
            return;
        }
        self.announce_sleep(engine);
        (0..self.processors()).for_each(|number| self.fall_asleep_on(engine, number));
    }

    /// Notifies the engine that the machine is about to sleep. Every processor still runs.
    pub fn announce_sleep(&self, engine: &Engine<&Self>) {
        engine.sampler().sleeps().begin(self.clock());
    }

    /// Puts one processor to sleep after the [announcement](Self::announce_sleep), and notifies the engine there. Other
    /// processors may still run; when the last one sleeps, all lose their power, because threads of a core share it.
    /// Until it [wakes](Self::wake_on), an access to its registers panics.
    pub fn fall_asleep_on(&self, engine: &Engine<&Self>, processor: u32) {
        engine.sampler().fall_asleep(self.current(processor), self.clock());
        self.processor(processor).set_asleep(true);
        if (0..self.processors()).all(|number| self.processor(number).is_asleep()) {
            self.all().for_each(ModelCpu::lose_power);
        }
    }

    /// Returns whether a processor sleeps.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        self.all().any(ModelCpu::is_asleep)
    }

    /// Wakes the machine and notifies the engine.
    pub fn wake(&self, engine: &Engine<&Self>) {
        self.wake_and_report(engine);
    }

    /// Wakes the machine and notifies the engine. Returns whether a ring has become half full.
    pub fn wake_and_report(&self, engine: &Engine<&Self>) -> bool {
        let slept = self.announce_wake(engine);
        let woken = (0..self.processors()).filter(|number| self.wake_on(engine, *number, slept));
        woken.count() > 0
    }

    /// Notifies the engine that the machine wakes, before the first processor does. Returns how long it slept.
    pub fn announce_wake(&self, engine: &Engine<&Self>) -> Ticks {
        engine.sampler().sleeps().end(self.clock())
    }

    /// Wakes one processor, after a sleep of this length, and notifies the engine there. Others may still sleep.
    /// Returns whether a ring has become half full.
    pub fn wake_on(&self, engine: &Engine<&Self>, processor: u32, slept: Ticks) -> bool {
        self.processor(processor).set_asleep(false);
        engine.sampler().wake(self.current(processor), self.clock(), slept)
    }
}
