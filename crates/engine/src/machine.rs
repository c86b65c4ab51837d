//! The system on which the engine runs: the kernel in the driver, a model in tests.

use profile::{Cpu, Hal};

/// Processors, and how to reach them.
pub trait Machine {
    /// A processor, for the code that runs on it.
    type Cpu: Cpu;

    /// How many processors are active; they are numbered from 0. It may grow, never shrink.
    fn processors(&self) -> u32;

    /// How many there can ever be.
    fn maximum_processors(&self) -> u32;

    /// Runs `work` on the boot processor, at any IRQL.
    fn on_boot_processor<T>(&self, work: impl FnOnce(&Self::Cpu) -> T) -> T;

    /// Runs `work` on every active processor at PROFILE_LEVEL, on all at the same time, with the processor's
    /// number; comes back when all are done.
    fn on_each_processor(&self, work: &(impl Fn(u32, &Self::Cpu) + Sync));

    /// Time since some moment in the past, in units of 100 ns.
    fn now(&self) -> u64;

    /// The smallest interval of its timers, in units of 100 ns, that is at least `wanted`.
    fn timer_interval(&self, wanted: u32) -> u32;

    /// Starts a periodic timer on each active processor, or gives those that run another interval (one that
    /// [`timer_interval`](Self::timer_interval) answered). False if memory is short: then nothing has changed.
    fn start_timers(&self, interval: u32) -> bool;

    /// Stops them.
    fn stop_timers(&self);

    /// How often the timer of a processor has expired since the driver was loaded.
    fn ticks(&self, processor: u32) -> u64;
}

/// The machine and the HAL over it, for what needs both.
#[derive(Debug)]
pub struct Ground<'a, M> {
    /// The machine.
    pub machine: &'a M,
    /// Its counters.
    pub hal: &'a Hal,
}

impl<M> Clone for Ground<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Ground<'_, M> {}
