//! The system on which the engine runs: the kernel in the driver, a simulation in tests.

use core::num::NonZeroU64;
use core::sync::atomic::{AtomicBool, Ordering};

use pmu::first_access::{Access, Fault, Phase, RegisterGroup};
use pmu::ibs;
use pmu::last_branches::MissingFeature;
use pmu::{Cpu, CurrentCpu, GuardedCpu, Options, ProcessorIndex};
use protocol::status::STATUS_NOT_SUPPORTED;
use protocol::{ErrorCode, HalSourceRecord, NtStatus, ProcessorSet, RegisterFault};
use sample_ring::Memory;

use crate::processor_set::set_of_all;
use crate::reply::{Refusal, no_ibs, no_last_branches};
use crate::sampler::{Hal, Sampler, TraceEvent};
use crate::suspend_time::ASLEEP;
use crate::time::{Duration100ns, Ticks};

/// Processors, timers, interrupts and memory of the system.
pub trait Platform {
    /// Registers of a processor, for the code that runs on it.
    type Cpu: Cpu;

    /// Registers of a processor, for a thread that is pinned to it.
    type PinnedCpu: GuardedCpu;

    /// Returns the options of the driver.
    fn options(&self) -> Options {
        Options::default()
    }

    /// Returns the number of active processors, which are numbered from 0. It may grow, but never shrinks.
    fn processors(&self) -> u32;

    /// Returns the maximum number of processors.
    fn maximum_processors(&self) -> u32;

    /// Runs `work` on the boot processor.
    ///
    /// # IRQL
    /// Any, for `work`.
    fn on_boot_processor<T>(&self, work: impl FnOnce(&Self::Cpu) -> T) -> T;

    /// Runs `work` on a processor, on this thread, which is pinned to the processor meanwhile.
    ///
    /// # Errors
    /// The NTSTATUS with which the thread did not get there; then `work` did not run.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL, for the caller and for `work`.
    fn on_processor<T>(
        &self,
        processor: ProcessorIndex,
        work: impl FnOnce(&Self::PinnedCpu) -> T,
    ) -> Result<T, NtStatus>;

    /// Runs `work` on these processors, which are active, each with the token of that processor, and returns when all
    /// are done. If these are all active processors, they run it at the same time. Otherwise they run it in any order,
    /// and no other processor is interrupted; nor is the current one, if it is the only one of the set.
    ///
    /// # IRQL
    /// At most APC_LEVEL, for the caller; PROFILE_LEVEL, for `work`.
    fn on_processors(&self, processors: &ProcessorSet, work: &(impl Fn(CurrentCpu<'_, Self::Cpu>) + Sync));

    /// Returns the time since a fixed moment.
    fn now(&self) -> Duration100ns;

    /// Returns the smallest interval of the platform's timers, in units of 100 ns, that is at least `wanted`.
    fn timer_interval(&self, wanted: u32) -> u32;

    /// Lets a periodic timer run on exactly these processors, with this interval. Whenever one expires, its processor
    /// calls [`Sampler::rotate`], [`Sampler::expire`] and, for the sessions that it returns, [`Sampler::sample_time`].
    /// `interval` comes from [`timer_interval`](Self::timer_interval). Returns false if memory is short or a timer is
    /// unavailable; then nothing has changed.
    fn start_timers(&self, processors: &ProcessorSet, interval: u32) -> bool;

    /// Stops the timers. An expiry just before may still call the sampler afterwards, until the platform is dropped.
    fn stop_timers(&self);

    /// Returns the units per second of the clock that times the samples.
    fn clock_frequency(&self) -> u64;

    /// Returns the time by that clock.
    fn clock(&self) -> Ticks;

    /// Returns that clock, for the code that runs on a processor.
    ///
    /// # IRQL
    /// Any, for the clock.
    fn shared_clock(&self) -> impl Fn() -> Ticks + Sync;

    /// Adds a processor that became active, where no timer runs yet. Returns false if a timer is unavailable; then the
    /// processor must not be used for events that need one.
    fn add_processor(&self, processor: ProcessorIndex) -> bool;

    /// HalAllocateHardwareCounters: reserves all counters of all processors for the driver.
    ///
    /// # Errors
    /// The NTSTATUS of the HAL.
    fn reserve_counters(&self) -> Result<(), NtStatus>;

    /// HalFreeHardwareCounters. No counter runs any more, except while a processor is added.
    ///
    /// # Errors
    /// The NTSTATUS of the HAL; the counters are still reserved.
    fn free_counters(&self) -> Result<(), NtStatus>;

    /// HalQuerySystemInformation: completes these records, which have a source each, by what the HAL of Windows says.
    ///
    /// # Errors
    /// The NTSTATUS with which the HAL could not be asked.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    fn ask_hal(&self, records: &mut [HalSourceRecord]) -> Result<(), NtStatus>;

    /// Allocates memory for the ring of a processor, near that processor where the machine has memory near to some. Its
    /// contents are undefined. Returns `None` if memory is short.
    ///
    /// # IRQL
    /// At most APC_LEVEL; the memory is freed at most at DISPATCH_LEVEL.
    fn ring_memory(&self, processor: ProcessorIndex, bytes: usize) -> Option<Memory>;

    /// Lets time pass.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    fn pause(&self, duration: Duration100ns);

    /// Prepares [`Cpu::lvt_pmi`] on every processor.
    ///
    /// # Errors
    /// The NTSTATUS of the call that failed.
    fn open_local_apic(&self) -> Result<(), NtStatus>;

    /// Undoes [`open_local_apic`](Self::open_local_apic). [`Cpu::lvt_pmi`] is not called any more.
    fn close_local_apic(&self);

    /// Directs performance monitor interrupts to [`Sampler::interrupt`]. Returns the address of the handler that the
    /// HAL was given.
    ///
    /// # Errors
    /// The NTSTATUS of the call that failed; then nothing is registered.
    fn begin_sampling(&self) -> Result<NonZeroU64, NtStatus>;

    /// KeSetHardwareCounterConfiguration: lets Windows' thread profiling read the general counters with the indexes
    /// below `count`, at most [`THREAD_COUNTERS`](pmu::interface::THREAD_COUNTERS), for every thread that asks for
    /// them. The counters run already.
    ///
    /// # Errors
    /// The NTSTATUS of the kernel; then nothing is configured.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    fn configure_thread_profiling(&self, count: u32) -> Result<(), NtStatus>;

    /// Undoes [`configure_thread_profiling`](Self::configure_thread_profiling), while the counters still run. If the
    /// kernel refuses, the code that serves the platform must stay loaded, until a later call succeeds.
    ///
    /// # Errors
    /// The NTSTATUS of the kernel; then thread profiling is still configured.
    ///
    /// # IRQL
    /// At most APC_LEVEL.
    fn release_thread_profiling(&self) -> Result<(), NtStatus>;

    /// Lets exactly these processors call [`Sampler::tick`] [`TICKS_PER_SECOND`](crate::TICKS_PER_SECOND) times per
    /// second, between [`begin_sampling`](Self::begin_sampling) and [`end_sampling`](Self::end_sampling). Returns false
    /// if a timer is unavailable; then nothing has changed.
    fn run_ticks(&self, processors: &ProcessorSet) -> bool;

    /// Returns whether a trace session wants the events of sessions.
    ///
    /// # IRQL
    /// Any.
    fn wants_session_events(&self) -> bool;

    /// Writes an event for Event Tracing for Windows, if a trace session wants it.
    ///
    /// # IRQL
    /// At most DISPATCH_LEVEL.
    fn write_event(&self, event: &TraceEvent<'_>);

    /// Returns whether user code runs with its own page tables, in which the memory of the kernel is not mapped: kernel
    /// VA shadowing.
    ///
    /// # Errors
    /// The NTSTATUS of a system that does not report it.
    fn is_shadowed(&self) -> Result<bool, NtStatus>;

    /// Returns the processor on which this thread runs at this moment. The thread may move at any time.
    fn current_processor(&self) -> ProcessorIndex;

    /// SystemProcessorProfileControlArea: allocates the control area of a processor, filled with zeros.
    /// [`Cpu::save_area`] refers to it from then on. The kernel or the platform allocates it.
    ///
    /// # Errors
    /// The refusal of the kernel, or that memory is short; then nothing is allocated.
    fn allocate_area(&self, processor: ProcessorIndex, by: AreaAllocator) -> Result<ControlArea, AreaRefused>;

    /// Frees the control area of a processor. Its save area must not be in use.
    ///
    /// # Errors
    /// The NTSTATUS of the kernel.
    fn free_area(&self, processor: ProcessorIndex) -> Result<(), NtStatus>;

    /// Returns the interrupt to the HAL, and stops the ticks. When this returns, no processor is in the sampler or will
    /// enter it.
    fn end_sampling(&self);
}

/// Allocator of a control area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AreaAllocator {
    /// The kernel, which then knows the area.
    Kernel,
    /// The platform, from its own memory.
    Driver,
    /// The platform, as so many pages of 4 KB that follow each other in physical memory.
    Contiguous(u16),
}

/// A PROCESSOR_PROFILE_CONTROL_AREA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlArea {
    /// Linear address.
    pub address: u64,
    /// Size in bytes, in the layout of this release of Windows.
    pub size: u32,
    /// Physical address of [contiguous](AreaAllocator::Contiguous) memory.
    pub physical: Option<u64>,
}

/// Refusal of the kernel to allocate a control area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AreaRefused {
    /// NTSTATUS of the kernel.
    pub status: NtStatus,
    /// Address of an existing area that the kernel reported, or 0.
    pub address: u64,
}

/// The platform and what runs on its processors, for functions that need both.
#[derive(Debug)]
pub struct EngineContext<'a, M> {
    /// The platform.
    pub platform: &'a M,
    /// Receiver of the interrupts.
    pub sampler: &'a Sampler,
    /// The HAL functions of the sampler.
    pub hal: &'a Hal,
}

impl<'a, M> EngineContext<'a, M> {
    /// Makes a context of these two.
    pub const fn new(platform: &'a M, sampler: &'a Sampler) -> Self {
        Self { platform, sampler, hal: sampler.hal() }
    }
}

impl<M: Platform> EngineContext<'_, M> {
    /// Runs `work`, which touches registers, on each of `processors`.
    ///
    /// # Errors
    /// [`ASLEEP`] if one of them sleeps; `work` does not run there. A processor falls asleep at PROFILE_LEVEL, so that
    /// the check is valid until `work` has run.
    ///
    /// # IRQL
    /// PROFILE_LEVEL, for `work`.
    pub fn on_awake(
        &self,
        processors: &[ProcessorIndex],
        work: impl Fn(CurrentCpu<'_, M::Cpu>) + Sync,
    ) -> Result<(), Refusal> {
        self.check_awake()?;
        let asleep = AtomicBool::new(false);
        self.platform.on_processors(&set_of_all(processors), &|current| {
            if self.hal.is_asleep(current.index()) {
                asleep.store(true, Ordering::Relaxed);
            } else {
                work(current);
            }
        });
        if asleep.into_inner() { Err(ASLEEP) } else { Ok(()) }
    }

    /// Accesses the registers of `group` for the first time, on each of `processors` on which that was not done yet. It
    /// stops at the first fault, which is remembered as well: no register of the processor is accessed again for the
    /// same purpose.
    ///
    /// # Errors
    /// [`ErrorCode::RegisterFault`]; [`ErrorCode::CountersDoNotWork`]; [`ASLEEP`]; or the platform's failure to run on
    /// a processor.
    pub fn access_first(
        &self,
        processors: &[ProcessorIndex],
        group: RegisterGroup,
        phase: Phase,
    ) -> Result<(), Refusal> {
        for processor in processors.iter().copied() {
            let result = match self.hal.first_accessed(processor, group, phase) {
                Some(known) => known,
                None => self.access_first_on(processor, group, phase)?,
            };
            if let Err(fault) = result {
                return Err(self.first_access_refusal(group, fault).processor(processor));
            }
        }
        Ok(())
    }

    /// Returns the refusal for a fault of the first accesses.
    #[cold]
    fn first_access_refusal(&self, group: RegisterGroup, fault: Fault) -> Refusal {
        match (group, fault.access) {
            (RegisterGroup::LastBranches, Access::ReadBack) => no_last_branches(MissingFeature::NotDelivered),
            (RegisterGroup::IbsOps | RegisterGroup::IbsFetches, Access::ReadBack) => {
                no_ibs(ibs::MissingFeature::NotDelivered)
            }
            (RegisterGroup::Counters, Access::ReadBack) => self.fault_refusal(ErrorCode::CountersDoNotWork, fault),
            _ => self.fault_refusal(ErrorCode::RegisterFault, fault),
        }
    }

    /// Returns the refusal for a guarded access.
    pub fn fault_refusal(&self, cause: ErrorCode, Fault { access, number, value }: Fault) -> Refusal {
        let (interface, hypervisor) = (self.hal.interface().kind() as u8, self.hal.boot.hypervisor as u32);
        // The numbers of both kinds are below ten.
        let [hypervisor, ..] = hypervisor.to_le_bytes();
        let fault = RegisterFault { number, access: access as u8, interface, hypervisor };
        Refusal::new(STATUS_NOT_SUPPORTED, cause).detail(fault.to_detail(), value)
    }

    fn access_first_on(
        &self,
        processor: ProcessorIndex,
        group: RegisterGroup,
        phase: Phase,
    ) -> Result<Result<(), Fault>, Refusal> {
        self.pinned_to(processor, |cpu| self.hal.access_first(processor, group, phase, cpu))
    }

    /// Runs `work` on a processor, on this thread, which is pinned to the processor meanwhile.
    ///
    /// # Errors
    /// [`ErrorCode::NoSuchProcessor`] or [`ASLEEP`]; then `work` did not run.
    ///
    /// # IRQL
    /// Below DISPATCH_LEVEL, for the caller and for `work`.
    pub fn pinned_to<T>(&self, processor: ProcessorIndex, work: impl FnOnce(&M::PinnedCpu) -> T) -> Result<T, Refusal> {
        let _access = self.sampler.sleeps().access()?;
        self.check_awake_on(&[processor])?;
        self.platform.on_processor(processor, work).map_err(|status| {
            Refusal::new(status, ErrorCode::NoSuchProcessor)
                .processor(processor)
                .detail(self.platform.processors().into(), 0)
        })
    }

    /// Refuses if the machine sleeps or is about to.
    ///
    /// # Errors
    /// [`ASLEEP`].
    pub fn check_awake(&self) -> Result<(), Refusal> {
        if self.sampler.sleeps().is_sleeping() { Err(ASLEEP) } else { Ok(()) }
    }

    /// Refuses if one of `processors` sleeps, or the machine is about to. The sleep of the machine ends before its
    /// processors are awake.
    ///
    /// # Errors
    /// [`ASLEEP`].
    pub fn check_awake_on(&self, processors: &[ProcessorIndex]) -> Result<(), Refusal> {
        self.check_awake()?;
        if processors.iter().any(|processor| self.hal.is_asleep(*processor)) { Err(ASLEEP) } else { Ok(()) }
    }
}

impl<M> Clone for EngineContext<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for EngineContext<'_, M> {}
