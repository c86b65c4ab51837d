//! The kernel as the machine that the engine runs on.

use core::cell::{Cell, OnceCell};
use core::num::NonZeroU64;

use engine::{Machine, Sampler};

use crate::cpu::Processor;
use crate::interrupt::Sampling;
use crate::nt::timers::{FineClock, Timers};
use crate::nt::{clock, processors, timers};

/// See the module.
#[derive(Default)]
pub struct Kernel {
    /// Made when ProfileTime is first started, and kept.
    timers: OnceCell<Timers>,
    /// While the timers run.
    clock: Cell<Option<FineClock>>,
    /// While something is sampled.
    sampling: Cell<Option<Sampling>>,
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.end_sampling();
    }
}

impl Machine for Kernel {
    type Cpu = Processor;

    fn processors(&self) -> u32 {
        processors::active()
    }

    fn maximum_processors(&self) -> u32 {
        processors::maximum()
    }

    fn on_boot_processor<T>(&self, work: impl FnOnce(&Processor) -> T) -> T {
        let _stay = processors::BootProcessor::enter();
        work(&Processor::current())
    }

    fn on_each_processor(&self, work: &(impl Fn(u32, &Processor) + Sync)) {
        processors::broadcast(&|| work(processors::current(), &Processor::current()));
    }

    fn now(&self) -> u64 {
        clock::now()
    }

    fn timer_interval(&self, wanted: u32) -> u32 {
        timers::interval(wanted)
    }

    fn start_timers(&self, interval: u32) -> bool {
        if self.timers.get().is_none() {
            let Some(timers) = Timers::new(processors::active(), || ()) else { return false };
            // It was empty: the engine's lock keeps others out.
            let _ = self.timers.set(timers);
        }
        if let Some(timers) = self.timers.get() {
            let clock = self.clock.take().unwrap_or_else(FineClock::ask);
            self.clock.set(Some(clock));
            timers.start(interval);
        }
        true
    }

    fn stop_timers(&self) {
        if let Some(timers) = self.timers.get() {
            timers.stop();
        }
        self.clock.take();
    }

    fn ticks(&self, processor: u32) -> u64 {
        self.timers.get().map_or(0, |timers| timers.ticks(processor))
    }
    fn clock_frequency(&self) -> u64 {
        clock::frequency()
    }

    fn clock(&self) -> u64 {
        clock::ticks()
    }

    fn begin_sampling(&self, sampler: &Sampler) -> Result<NonZeroU64, u32> {
        let (sampling, handler) = Sampling::begin(sampler).map_err(i32::cast_unsigned)?;
        self.sampling.set(Some(sampling));
        Ok(handler)
    }

    fn end_sampling(&self) {
        if let Some(sampling) = self.sampling.take() {
            sampling.end(true);
        }
    }
}
