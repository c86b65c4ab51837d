//! The Windows kernel as the platform of the engine.

use core::cell::Cell;
use core::num::NonZeroU64;

use engine::{AreaAllocator, AreaRefused, ControlArea, Duration100ns, Platform, Ticks, TraceEvent};
use interrupt_path::clock::ticks;
use interrupt_path::cpu_dpcs::CpuDpcs;
use pmu::{CurrentCpu, Options, ProcessorIndex};
use processor::{Processor, current_processor};
use protocol::{HalSourceRecord, NtStatus, ProcessorSet};
use sample_ring::Memory;
use wdk_sys::PCUNICODE_STRING;

use crate::cpu::{self, PinnedProcessor};
use crate::interrupt::{self, Sampling, SamplingByTime};
use crate::nt::device_object::{self, Keep};
use crate::nt::hal::{self, Reservation};
use crate::nt::node_pool::NodePool;
use crate::nt::targeted_calls::TargetedCalls;
use crate::nt::text::Text;
use crate::nt::{clock, control_area, local_apic, processors, registry, thread_profiling, timers};
use crate::tracing;

/// The value that makes the driver treat a Hygon processor as one of AMD.
static HYGON_AS_AMD: Text<10> = Text::new("HygonAsAmd");

/// The Windows kernel; implements [`Platform`].
pub struct Kernel {
    options: Options,
    calls: TargetedCalls,
    pool: NodePool,
    /// Set while an event is sampled by time.
    timers: Cell<Option<SamplingByTime>>,
    /// The DPCs that write events.
    _events: CpuDpcs,
    /// Set while an event is sampled.
    sampling: Cell<Option<Sampling>>,
    /// Set while counters are in use.
    reservation: Cell<Option<Reservation>>,
}

impl Drop for Kernel {
    fn drop(&mut self) {
        self.stop_timers();
        self.end_sampling();
    }
}

impl Kernel {
    /// Creates the platform with the options of the service. `service` is the path that DriverEntry gets. Returns
    /// `None` if memory is low.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn new(service: PCUNICODE_STRING) -> Option<Self> {
        let hygon_as_amd = registry::option(service, &HYGON_AS_AMD.counted()).is_some_and(|value| value != 0);
        Some(Self {
            options: Options { hygon_as_amd },
            calls: TargetedCalls::new()?,
            _events: CpuDpcs::new(processors::maximum(), interrupt::write_events)?,
            pool: NodePool::new(),
            timers: Cell::new(None),
            sampling: Cell::new(None),
            reservation: Cell::new(None),
        })
    }
}

impl Platform for Kernel {
    type Cpu = Processor;
    type PinnedCpu = PinnedProcessor;

    fn options(&self) -> Options {
        self.options
    }

    fn processors(&self) -> u32 {
        processors::active()
    }

    fn maximum_processors(&self) -> u32 {
        processors::maximum()
    }

    fn on_boot_processor<T>(&self, work: impl FnOnce(&Processor) -> T) -> T {
        cpu::on_boot_processor(work)
    }

    fn on_processor<T>(
        &self,
        processor: ProcessorIndex,
        work: impl FnOnce(&PinnedProcessor) -> T,
    ) -> Result<T, NtStatus> {
        cpu::on_processor(processor, work).map_err(NtStatus::from)
    }

    fn on_processors(&self, processors: &ProcessorSet, work: &(impl Fn(CurrentCpu<'_, Processor>) + Sync)) {
        cpu::on_processors(&self.calls, processors, work);
    }

    fn ring_memory(&self, processor: ProcessorIndex, bytes: usize) -> Option<Memory> {
        self.pool.allocate(processor, bytes)
    }

    fn wants_session_events(&self) -> bool {
        tracing::wants_session_events()
    }

    fn write_event(&self, event: &TraceEvent<'_>) {
        tracing::write(event);
    }

    fn now(&self) -> Duration100ns {
        clock::now()
    }

    fn timer_interval(&self, wanted: u32) -> u32 {
        timers::interval(wanted)
    }

    fn start_timers(&self, processors: &ProcessorSet, interval: u32) -> bool {
        if let Some(timers) = self.timers.take() {
            let started = timers.run(processors, interval);
            self.timers.set(Some(timers));
            return started;
        }
        let timers = SamplingByTime::begin(processors, interval);
        let started = timers.is_some();
        self.timers.set(timers);
        started
    }

    fn stop_timers(&self) {
        if let Some(timers) = self.timers.take() {
            timers.end();
        }
    }

    fn add_processor(&self, processor: ProcessorIndex) -> bool {
        let sampling = self.sampling.take();
        let ticks = sampling.as_ref().is_none_or(|sampling| sampling.adopt(processor));
        self.sampling.set(sampling);
        let timers = self.timers.take();
        let timed = timers.as_ref().is_none_or(|timers| timers.adopt(processor));
        self.timers.set(timers);
        ticks && timed
    }

    fn reserve_counters(&self) -> Result<(), NtStatus> {
        let reservation = Reservation::new().map_err(NtStatus::from)?;
        self.reservation.set(Some(reservation));
        Ok(())
    }

    fn free_counters(&self) -> Result<(), NtStatus> {
        let Some(reservation) = self.reservation.take() else { return Ok(()) };
        reservation.free().map_err(|(reservation, status)| {
            self.reservation.set(Some(reservation));
            NtStatus::from(status)
        })
    }

    fn ask_hal(&self, records: &mut [HalSourceRecord]) -> Result<(), NtStatus> {
        hal::ask(records).map_err(NtStatus::from)
    }

    fn pause(&self, duration: Duration100ns) {
        clock::pause(duration);
    }

    fn open_local_apic(&self) -> Result<(), NtStatus> {
        cpu::on_processor(ProcessorIndex::BOOT, local_apic::open).flatten().map_err(NtStatus::from)
    }

    fn close_local_apic(&self) {
        local_apic::close();
    }

    fn clock_frequency(&self) -> u64 {
        clock::frequency()
    }

    fn clock(&self) -> Ticks {
        ticks()
    }

    fn shared_clock(&self) -> impl Fn() -> Ticks + Sync {
        ticks
    }

    fn is_shadowed(&self) -> Result<bool, NtStatus> {
        control_area::is_shadowed().map_err(NtStatus::from)
    }

    fn current_processor(&self) -> ProcessorIndex {
        current_processor()
    }

    fn allocate_area(&self, processor: ProcessorIndex, by: AreaAllocator) -> Result<ControlArea, AreaRefused> {
        control_area::allocate(processor, by)
    }

    fn free_area(&self, processor: ProcessorIndex) -> Result<(), NtStatus> {
        control_area::free(processor).map_err(NtStatus::from)
    }

    fn begin_sampling(&self) -> Result<NonZeroU64, NtStatus> {
        let (sampling, handler) = Sampling::begin().map_err(NtStatus::from)?;
        self.sampling.set(Some(sampling));
        Ok(handler)
    }

    fn configure_thread_profiling(&self, count: u32) -> Result<(), NtStatus> {
        thread_profiling::configure(count).map_err(NtStatus::from)
    }

    fn release_thread_profiling(&self) -> Result<(), NtStatus> {
        let released = thread_profiling::configure(0);
        device_object::keep_loaded(Keep::ThreadProfiling, released.is_err());
        released.map_err(NtStatus::from)
    }

    fn run_ticks(&self, processors: &ProcessorSet) -> bool {
        let sampling = self.sampling.take();
        let ticks = sampling.as_ref().is_some_and(|sampling| sampling.run_ticks(processors));
        self.sampling.set(sampling);
        ticks
    }

    fn end_sampling(&self) {
        if let Some(sampling) = self.sampling.take() {
            sampling.end(true);
        }
    }
}
