//! The HAL functions (HAL PMU design, section 2) over a profile interface. Each returns a status with its cause.
//!
//! [`Hal`] is shared by all processors. The caller of the functions that plan (which counter, source and interval)
//! holds a lock of its own. Functions that touch registers take a [`CurrentCpu`](crate::CurrentCpu): they run on that
//! processor at PROFILE_LEVEL.

mod boot;
mod counting;
mod cpus;
mod disturbance;
mod error;
mod event_table;
mod extra;
mod first_access;
mod handler;
mod hybrid;
pub mod information;
mod interrupt;
pub mod movement;
mod other_thread;
mod ownership;
mod perf_metrics;
mod registers;
mod reservation;
mod sleep;
mod sources;
mod turns;

use alloc::vec::Vec;

pub use boot::BootProcessor;
pub use error::{HalError, MAX_RAW};
pub use event_table::EventTable;
pub use extra::ExtraTaken;
pub use first_access::TriedRecording;
pub use handler::InterruptHandler;

use crate::constraints::Listing;
use crate::cpu::Cpuid;
use crate::current_cpu::ProcessorIndex;
use crate::interface::{Interface, Support};
use crate::interval::IntervalRange;
use crate::per_cpu::PerCpu;
use crate::selection::Options;
use crate::source::ProfileSource;
use crate::state::{self, CounterCell, CounterSet, CpuCounters, PerCpuPmu};
use cpus::Cpus;

/// HalpProfileInterface with its state and the intervals.
///
/// `E` is what the caller keeps for each processor, in the [`PerCpu`] of that processor.
#[derive(Debug)]
pub struct Hal<E = ()> {
    /// What the boot processor decides.
    pub boot: BootProcessor,
    /// Sources, raw events in use, and intervals.
    pub events: EventTable,
    /// The registered handler of performance monitor interrupts.
    pub handler: InterruptHandler,
    /// What each processor owns.
    cpus: Cpus<E>,
    /// Core types of the processors.
    probed_types: hybrid::ProbedTypes,
}

/// OVERFLOW_STATUS: counters that overflowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverflowStatus(pub CounterSet);

impl OverflowStatus {
    /// Returns OVERFLOW_STATUS.Number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0.len()
    }
}

/// HAL_PROFILE_SOURCE_INFORMATION, with the limits of the source.
#[derive(Debug, Clone, Copy)]
pub struct SourceInformation {
    /// Entry of the table of the interface, or one made for a raw event.
    pub source: ProfileSource,
    /// Whether the source is supported.
    pub support: Support,
    /// Interval in force.
    pub interval: u32,
    /// Intervals that the source accepts.
    pub range: IntervalRange,
    /// Counters that can count the source. Empty for ProfileTime, which needs none. Sources compete for nothing except
    /// counters.
    pub counters: CounterSet,
    /// Whether these counters are known to count it.
    pub listing: Listing,
    /// Counters that record the source precisely, by the tables: whether the processor has PEBS is not examined.
    pub precise: CounterSet,
}

impl Hal {
    /// Chooses the interface and allocates its state, without an extension per processor. `cpu` is the boot processor.
    ///
    /// # Errors
    /// [`HalError::NoMemory`] if memory is short. If it is short for the state of the counters, the HAL stops the
    /// machine on Amd64, and this refuses. On Emon every source becomes unsupported, as in the HAL.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn new(cpu: &impl Cpuid, maximum_processors: u32) -> Result<Self, HalError> {
        Self::with_states(cpu, Options::default(), maximum_processors, 0, state::allocate)
    }
}

impl<E: Default> Hal<E> {
    /// As [`new`](Hal::new), with options of the driver, with at least `most_counters` indexes per processor, because
    /// other processors may have more than the boot processor, with the allocation of the states by the caller, and
    /// with an extension for each processor.
    ///
    /// # Errors
    /// As [`new`](Hal::new).
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn with_states(
        cpu: &impl Cpuid,
        options: Options,
        maximum_processors: u32,
        most_counters: u8,
        allocate: impl FnOnce(u32, u8) -> Option<Vec<CounterCell>>,
    ) -> Result<Self, HalError> {
        let boot = BootProcessor::of(cpu, options);
        let cells_per_cpu = boot.interface.indexes().max(most_counters).min(CounterSet::MOST);
        let states = allocate(maximum_processors, cells_per_cpu);
        if states.is_none() && !matches!(boot.interface, Interface::Emon(_)) {
            return Err(HalError::NoMemory);
        }
        let cpus = Cpus::new(maximum_processors, boot.interface.capabilities(), cells_per_cpu, states);
        Ok(Self {
            events: EventTable::new(boot.interface.sources()).ok_or(HalError::NoMemory)?,
            boot,
            handler: InterruptHandler::default(),
            cpus: cpus.ok_or(HalError::NoMemory)?,
            probed_types: hybrid::ProbedTypes::new(),
        })
    }
}

impl<E> Hal<E> {
    /// Returns the interface in use, as it is on the boot processor.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.boot.interface
    }

    /// Returns the interface as it is on a processor: with the counters of that processor, once it was
    /// [probed](Self::probe).
    #[must_use]
    #[inline]
    pub fn interface_of(&self, processor: ProcessorIndex) -> Interface {
        self.cpus.pmu(processor).map_or(self.boot.interface, |pmu| self.interface_with(pmu))
    }

    /// Returns the interface with the capabilities of a processor.
    #[inline]
    fn interface_with(&self, pmu: &PerCpuPmu) -> Interface {
        self.boot.interface.with_capabilities(pmu.snapshot.capabilities())
    }

    /// As [`interface_with`](Self::interface_with), also for the functions that do not take [`CpuCounters`] and for
    /// those that decide which events the processor supports.
    fn whole_interface_with(&self, pmu: &PerCpuPmu) -> Interface {
        self.boot.interface.of_processor(pmu.snapshot.capabilities())
    }

    /// Returns the bytes of the state of the counters.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.cpus.state_bytes()
    }

    /// Returns what a processor owns, or `None` if it does not exist.
    #[must_use]
    #[inline]
    pub fn per_cpu(&self, processor: ProcessorIndex) -> Option<&PerCpu<E>> {
        self.cpus.get(processor)
    }

    /// Iterates over what each processor owns, in their order.
    pub fn each_cpu(&self) -> impl Iterator<Item = &PerCpu<E>> {
        self.cpus.iter()
    }

    #[inline]
    fn pmu(&self, processor: ProcessorIndex) -> Option<&PerCpuPmu> {
        self.cpus.pmu(processor)
    }

    /// Returns the counters of a processor. There are none if the processor does not exist or memory was short.
    #[must_use]
    pub fn cpu_counters(&self, processor: ProcessorIndex) -> CpuCounters<'_> {
        self.find(processor).unwrap_or_default()
    }

    /// Returns the counters of a processor with its PMU state, or `None` if it does not exist: the one lookup of each
    /// HAL function.
    #[inline]
    fn find(&self, processor: ProcessorIndex) -> Option<CpuCounters<'_>> {
        let pmu = self.pmu(processor)?;
        Some(match self.cpus.states(processor) {
            Some(cells) => CpuCounters { cells, active: pmu.active(), pmu, raw: self.events.raw() },
            None => CpuCounters { pmu, ..CpuCounters::default() },
        })
    }
}
