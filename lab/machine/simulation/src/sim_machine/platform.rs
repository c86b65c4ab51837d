//! The machine as the platform of an engine.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use engine::{AreaAllocator, AreaRefused, ControlArea, Duration100ns, Platform, Ticks, TraceEvent};
use pmu::debug_store::MOST_SAVE_AREA_WORDS;
use pmu::debug_store::architectural::BUFFER_PAGE;
use pmu::{CurrentCpu, ProcessorIndex};
use protocol::status::{
    STATUS_DEVICE_BUSY, STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_PARAMETER, STATUS_NOT_SUPPORTED,
    STATUS_WMI_ALREADY_ENABLED,
};
use protocol::{HalSourceRecord, NtStatus, ProcessorSet};
use sample_ring::Memory;

use super::{Call, SUCCESS, SimMachine, lock};
use crate::cpu::ModelCpu;
use crate::fault_point;

impl Platform for &SimMachine {
    type Cpu = ModelCpu;
    type PinnedCpu = ModelCpu;

    fn processors(&self) -> u32 {
        self.active.load(Ordering::Relaxed)
    }

    fn maximum_processors(&self) -> u32 {
        u32::try_from(self.processors.len()).unwrap_or(u32::MAX)
    }

    /// An engine calls this when it is created. From then on, an unguarded access panics unless a guarded one came
    /// before it; code that uses the processors without an engine is free to.
    fn on_boot_processor<T>(&self, work: impl FnOnce(&ModelCpu) -> T) -> T {
        self.all().for_each(|cpu| cpu.require_guards(true));
        work(self.processor(0))
    }

    fn on_processor<T>(&self, processor: ProcessorIndex, work: impl FnOnce(&ModelCpu) -> T) -> Result<T, NtStatus> {
        self.refusal(Call::PinThread)?;
        if processor.number() >= self.processors() {
            return Err(STATUS_INVALID_PARAMETER);
        }
        Ok(work(self.processor(processor.number())))
    }

    /// Interrupts the processors as the driver does: all at once; the current one alone not at all; others in
    /// descending order, because nothing may rely on an order.
    fn on_processors(&self, processors: &ProcessorSet, work: &(impl Fn(CurrentCpu<'_, ModelCpu>) + Sync)) {
        let active = self.processors();
        let mut wanted: Vec<u32> = processors.iter().collect();
        assert!(wanted.iter().all(|number| *number < active), "{wanted:?}: only {active} processors are active");
        wanted.reverse();
        let is_here_alone = wanted == [self.current.load(Ordering::Relaxed)];
        self.broadcasts.fetch_add((wanted.len() == active as usize && !is_here_alone).into(), Ordering::Relaxed);
        for number in wanted {
            if let Some(count) = self.interruptions.get(number as usize).filter(|_| !is_here_alone) {
                count.fetch_add(1, Ordering::Relaxed);
            }
            self.pass(self.latency.load(Ordering::Relaxed));
            work(self.current(number));
        }
    }

    fn wants_session_events(&self) -> bool {
        true
    }

    fn write_event(&self, event: &TraceEvent<'_>) {
        self.add_event(event);
    }

    /// All memory is equally near.
    fn ring_memory(&self, _processor: ProcessorIndex, bytes: usize) -> Option<Memory> {
        Memory::allocate(bytes)
    }

    fn now(&self) -> Duration100ns {
        Duration100ns(self.clock.load(Ordering::Relaxed))
    }

    /// Rounds up to milliseconds.
    fn timer_interval(&self, wanted: u32) -> u32 {
        wanted.next_multiple_of(10_000)
    }

    fn start_timers(&self, processors: &ProcessorSet, interval: u32) -> bool {
        if self.fails(Call::StartTimers) {
            return false;
        }
        assert!(!processors.is_empty(), "timers of no processor");
        self.timers.store(interval, Ordering::Relaxed);
        *lock(&self.timed) = *processors;
        true
    }

    fn stop_timers(&self) {
        *lock(&self.timed) = ProcessorSet::EMPTY;
        self.timers.store(0, Ordering::Relaxed);
    }

    fn clock_frequency(&self) -> u64 {
        10_000_000
    }

    fn clock(&self) -> Ticks {
        self.now_ticks()
    }

    fn shared_clock(&self) -> impl Fn() -> Ticks + Sync {
        || self.now_ticks()
    }

    fn add_processor(&self, _processor: ProcessorIndex) -> bool {
        !self.fails(Call::AddProcessor)
    }

    fn reserve_counters(&self) -> Result<(), NtStatus> {
        self.attempt(Call::ReserveCounters)?;
        if self.clock.load(Ordering::Relaxed) < self.busy_until.load(Ordering::Relaxed) {
            self.busy_answers.fetch_add(1, Ordering::Relaxed);
            self.clock.fetch_add(self.busy_answer.load(Ordering::Relaxed), Ordering::Relaxed);
            return Err(STATUS_DEVICE_BUSY);
        }
        assert!(!self.reserved.swap(true, Ordering::Relaxed), "reserved twice");
        self.reserved_on.store(self.processors(), Ordering::Relaxed);
        Ok(())
    }

    /// Subtracts on every active processor, as the HAL does.
    fn free_counters(&self) -> Result<(), NtStatus> {
        self.attempt(Call::FreeCounters)?;
        assert!(self.reserved.swap(false, Ordering::Relaxed), "freed, but not reserved");
        let reserved_on = self.reserved_on.load(Ordering::Relaxed);
        assert_eq!(self.processors(), reserved_on, "freed on processors on which they were not reserved");
        Ok(())
    }

    /// The HAL knows the sources with an even number, with their number as the interval, and is at a loss for 0x13.
    fn ask_hal(&self, records: &mut [HalSourceRecord]) -> Result<(), NtStatus> {
        self.attempt(Call::AskHal)?;
        for record in records {
            record.status = if record.source == 0x13 { STATUS_NOT_SUPPORTED.number() } else { SUCCESS };
            record.supported = u32::from(record.source % 2 == 0);
            record.interval = record.source;
        }
        Ok(())
    }

    fn pause(&self, duration: Duration100ns) {
        self.pass(duration.0);
    }

    fn open_local_apic(&self) -> Result<(), NtStatus> {
        self.attempt(Call::OpenLocalApic)?;
        assert!(!self.apic.swap(true, Ordering::Relaxed), "opened twice");
        Ok(())
    }

    fn close_local_apic(&self) {
        assert!(self.apic.swap(false, Ordering::Relaxed), "closed, but not open");
        assert!(!self.is_sampling(), "closed under the handler");
    }

    fn is_shadowed(&self) -> Result<bool, NtStatus> {
        if fault_point::fails("is_shadowed") {
            return Err(STATUS_INSUFFICIENT_RESOURCES);
        }
        match self.shadow.load(Ordering::Relaxed) {
            0 => Ok(false),
            1 => Ok(true),
            status => Err(NtStatus::new(status)),
        }
    }

    fn current_processor(&self) -> ProcessorIndex {
        ProcessorIndex::new(self.current.load(Ordering::Relaxed))
    }

    fn allocate_area(&self, processor: ProcessorIndex, by: AreaAllocator) -> Result<ControlArea, AreaRefused> {
        let (status, first, address) = &self.area_refusal;
        let status = status.load(Ordering::Relaxed);
        if fault_point::fails("allocate_area") {
            return Err(AreaRefused { status: STATUS_INSUFFICIENT_RESOURCES, address: 0 });
        }
        if by == AreaAllocator::Kernel && status != SUCCESS && processor.number() >= first.load(Ordering::Relaxed) {
            return Err(AreaRefused { status: NtStatus::new(status), address: address.load(Ordering::Relaxed) });
        }
        let cpu = self.processor(processor.number());
        let words = match by {
            AreaAllocator::Kernel => u16::from(self.kernel_area_words.load(Ordering::Relaxed)),
            AreaAllocator::Driver => MOST_SAVE_AREA_WORDS,
            AreaAllocator::Contiguous(_) if processor.number() >= self.no_contiguous_from.load(Ordering::Relaxed) => {
                return Err(AreaRefused { status: STATUS_INSUFFICIENT_RESOURCES, address: 0 });
            }
            AreaAllocator::Contiguous(pages) => {
                let size = u32::from(pages) * BUFFER_PAGE;
                let (address, physical) = cpu.allocate_contiguous(size as usize / 8);
                return Ok(ControlArea { address, size, physical: Some(physical) });
            }
        };
        let address = cpu.allocate_area(words.into());
        Ok(ControlArea { address, size: u32::from(words) * 8, physical: None })
    }

    fn free_area(&self, processor: ProcessorIndex) -> Result<(), NtStatus> {
        if fault_point::fails("free_area") {
            return Err(STATUS_INSUFFICIENT_RESOURCES);
        }
        self.processor(processor.number()).free_area();
        Ok(())
    }

    fn begin_sampling(&self) -> Result<NonZeroU64, NtStatus> {
        self.attempt(Call::BeginSampling)?;
        assert!(!self.sampling.swap(true, Ordering::Relaxed), "registered twice");
        Ok(NonZeroU64::MIN)
    }

    fn configure_thread_profiling(&self, count: u32) -> Result<(), NtStatus> {
        self.attempt(Call::ConfigureThreadProfiling)?;
        assert!((1..=16).contains(&count), "{count} counters");
        assert!(self.least_running(self.active()) > 0, "configured before the counters run");
        if self.profiling_threads.load(Ordering::Relaxed) != 0 {
            return Err(STATUS_WMI_ALREADY_ENABLED);
        }
        self.thread_counters_on.store(self.active(), Ordering::Relaxed);
        assert_eq!(self.thread_counters.swap(count, Ordering::Relaxed), 0, "configured twice");
        Ok(())
    }

    fn release_thread_profiling(&self) -> Result<(), NtStatus> {
        self.attempt(Call::ReleaseThreadProfiling)?;
        // While the machine sleeps, none runs.
        assert!(
            self.is_asleep() || self.least_running(self.thread_counters_on.load(Ordering::Relaxed)) > 0,
            "the counters stopped before"
        );
        if self.profiling_threads.load(Ordering::Relaxed) != 0 {
            return Err(STATUS_WMI_ALREADY_ENABLED);
        }
        assert_ne!(self.thread_counters.swap(0, Ordering::Relaxed), 0, "ended, but not configured");
        Ok(())
    }

    fn run_ticks(&self, processors: &ProcessorSet) -> bool {
        assert!(self.is_sampling(), "ticks without the interrupt");
        if fault_point::fails("run_ticks") {
            return false;
        }
        *lock(&self.ticking) = *processors;
        true
    }

    fn end_sampling(&self) {
        *lock(&self.ticking) = ProcessorSet::EMPTY;
        assert!(self.sampling.swap(false, Ordering::Relaxed), "given back, but not registered");
    }
}
