//! The system on which the engine runs: the kernel in the driver, a model in tests.

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicBool, Ordering};

use pmu::{Cpu, CurrentCpu, Hal, ProcessorIndex};

use crate::reply::Refusal;
use crate::sampler::Sampler;
use crate::session::Timestamp;
use crate::suspend_time::ASLEEP;

/// Processors, and how to reach them.
pub trait Platform {
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
    fn on_each_processor(&self, work: &(impl Fn(CurrentCpu<'_, Self::Cpu>) + Sync));

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
    fn ticks(&self, processor: ProcessorIndex) -> u64;

    /// Units in a second of the clock by which samples are timed.
    fn clock_frequency(&self) -> u64;

    /// That clock.
    fn clock(&self) -> u64;

    /// A processor was added, and is active: timers that run, run there as well from now on. False if it can not be
    /// had; then the processor is not to be used for what takes a timer.
    fn add_processor(&self, processor: ProcessorIndex) -> bool;

    /// HalAllocateHardwareCounters: all counters of all processors are ours from now on.
    ///
    /// # Errors
    /// The NTSTATUS of the HAL.
    fn reserve_counters(&self) -> Result<(), u32>;

    /// HalFreeHardwareCounters. No counter counts any more.
    fn free_counters(&self);

    /// From now on [`Cpu::lvt_pmi`] may be called, on every processor.
    ///
    /// # Errors
    /// The NTSTATUS of what refused.
    fn open_local_apic(&self) -> Result<(), u32>;

    /// [`Cpu::lvt_pmi`] is called no more.
    fn close_local_apic(&self);

    /// From now on performance monitor interrupts go to [`Sampler::interrupt`], and every processor calls
    /// [`Sampler::tick`], [`TICKS_PER_SECOND`](crate::TICKS_PER_SECOND) times. Answers the address that the HAL was
    /// given.
    ///
    /// # Errors
    /// The NTSTATUS of what refused; then nothing is registered.
    fn begin_sampling(&self) -> Result<NonZeroU64, u32>;

    /// Whether user code runs with page tables of its own, in which the kernel's memory is not mapped: kernel VA shadowing.
    ///
    /// # Errors
    /// The NTSTATUS with which the system does not tell.
    fn is_shadowed(&self) -> Result<bool, u32>;

    /// The processor on which this thread runs just now.
    fn current_processor(&self) -> ProcessorIndex;

    /// SystemProcessorProfileControlArea: the control area of a processor, all zero. From now on [`Cpu::save_area`] is of
    /// it there. Asked of the kernel, or made by the machine itself.
    ///
    /// # Errors
    /// What the kernel says; then nothing is made.
    fn allocate_area(&self, processor: ProcessorIndex, by: AreaAllocator) -> Result<ControlArea, AreaRefused>;

    /// The control area of a processor is no more. Its save area has to be out of use.
    ///
    /// # Errors
    /// The kernel's NTSTATUS.
    fn free_area(&self, processor: ProcessorIndex) -> Result<(), u32>;

    /// The HAL has its interrupt back; when this returns, no processor is in the sampler or will come into it.
    fn end_sampling(&self);
}

/// Who makes a control area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AreaAllocator {
    /// The kernel, which then knows of it.
    Kernel,
    /// The machine, from its own memory.
    Driver,
}

/// A PROCESSOR_PROFILE_CONTROL_AREA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlArea {
    /// Its linear address.
    pub address: u64,
    /// Its bytes, in the layout of this release of Windows.
    pub size: u32,
}

/// Why the kernel makes no control area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AreaRefused {
    /// Its NTSTATUS.
    pub status: u32,
    /// The address that it told, of one that exists; or 0.
    pub address: u64,
}

/// The machine, and what runs on its processors, for what needs both.
#[derive(Debug)]
pub struct EngineContext<'a, M> {
    /// The machine.
    pub platform: &'a M,
    /// Who gets the samples.
    pub sampler: &'a Sampler,
    /// The counters: those of the sampler.
    pub hal: &'a Hal,
}

impl<'a, M> EngineContext<'a, M> {
    /// Of these two.
    pub const fn new(platform: &'a M, sampler: &'a Sampler) -> Self {
        Self { platform, sampler, hal: sampler.hal() }
    }
}

impl<M: Platform> EngineContext<'_, M> {
    /// Now.
    pub fn moment(&self) -> Timestamp {
        Timestamp { time: self.platform.now(), asleep: self.sampler.asleep(self.platform.clock()) }
    }

    /// Runs `work`, which touches registers, on each of `processors`, which are in ascending order, at PROFILE_LEVEL.
    ///
    /// # Errors
    /// [`ASLEEP`] if one of them sleeps; `work` does not run there. A processor falls asleep at PROFILE_LEVEL, so that the
    /// answer of each stays true until `work` has run.
    pub fn on_awake(
        &self,
        processors: &[ProcessorIndex],
        work: impl Fn(CurrentCpu<'_, M::Cpu>) + Sync,
    ) -> Result<(), Refusal> {
        self.check_awake()?;
        let asleep = AtomicBool::new(false);
        self.platform.on_each_processor(&|current| {
            if processors.binary_search(&current.index()).is_err() {
                return;
            }
            if self.hal.is_asleep(current.index()) {
                asleep.store(true, Ordering::Relaxed);
            } else {
                work(current);
            }
        });
        if asleep.into_inner() { Err(ASLEEP) } else { Ok(()) }
    }

    /// Refuses what is not worth beginning, because the machine sleeps or is about to.
    ///
    /// # Errors
    /// [`ASLEEP`].
    pub fn check_awake(&self) -> Result<(), Refusal> {
        if self.sampler.sleeps().is_sleeping() { Err(ASLEEP) } else { Ok(()) }
    }
}

impl<M> Clone for EngineContext<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for EngineContext<'_, M> {}
