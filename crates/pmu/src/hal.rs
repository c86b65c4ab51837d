//! The HAL functions (HAL PMU design, section 2) over a profile interface. Each returns a status with its cause.
//!
//! [`Hal`] is shared by all processors. The caller of the functions that plan (which counter, source and interval)
//! holds a lock of its own. Functions that touch registers take a [`CurrentCpu`](crate::CurrentCpu): they run on that
//! processor at PROFILE_LEVEL.

mod counting;
mod disturbance;
mod error;
mod extra;
mod first_access;
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

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

pub use error::{HalError, MAX_RAW};
pub use extra::ExtraTaken;
pub use first_access::TriedRecording;

use crate::constraints::Listing;
use crate::cpu::Cpuid;
use crate::current_cpu::ProcessorIndex;
use crate::errata::workarounds::Workarounds;
use crate::hypervisor::Hypervisor;
use crate::interface::{Interface, Kind, Support};
use crate::interval::IntervalRange;
use crate::per_cpu::PerCpu;
use crate::selection::{self, Options, Selection};
use crate::source::ProfileSource;
use crate::state::{self, CounterCell, CounterSet, CpuCounters, PerCpuPmu, RawSlot};
use crate::try_boxed::try_boxed;

/// HalpProfileInterface with its state and the intervals.
///
/// `E` is what the caller keeps for each processor, in the [`PerCpu`] of that processor.
#[derive(Debug)]
pub struct Hal<E = ()> {
    selection: Selection,
    hypervisor: Hypervisor,
    /// Workarounds of the boot processor.
    workarounds: Workarounds,
    /// Interface of the boot processor.
    interface: Interface,
    /// Whether CPUID enumerates the registers of the interface.
    enumerated: bool,
    /// Cells for each processor: the number of counters of the processor that has most.
    cells_per_cpu: u8,
    /// Cells of all processors, in their order. There are none if memory was short.
    states: Box<[CounterCell]>,
    /// Whether memory was short for the cells.
    is_stateless: bool,
    /// Core types of the processors.
    probed_types: hybrid::ProbedTypes,
    /// What each processor owns besides its cells.
    per_cpu: Box<[PerCpu<E>]>,
    /// One interval per entry of the table of the interface.
    intervals: Box<[AtomicU32]>,
    /// Raw events in use. The state of a counter has the index of its slot.
    raw: Box<[RawSlot]>,
    /// Number of the slots that were ever taken: the first ones.
    raw_taken: AtomicU16,
    /// Address of the interrupt handler, or 0.
    handler: AtomicU64,
    /// Owner that registered it, or 0.
    handler_owner: AtomicU64,
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
        allocate: impl FnOnce(u32, u8) -> Option<Box<[CounterCell]>>,
    ) -> Result<Self, HalError> {
        let selection = Selection::with_options(cpu, options);
        let interface = Interface::new(selection.interface, cpu);
        let cells_per_cpu = interface.indexes().max(most_counters).min(CounterSet::MOST);
        let states = allocate(maximum_processors, cells_per_cpu);
        if states.is_none() && !matches!(interface, Interface::Emon(_)) {
            return Err(HalError::NoMemory);
        }
        let capabilities = interface.capabilities();
        let per_cpu = per_cpus(maximum_processors, capabilities)?;
        let sources = interface.sources();
        let intervals = try_boxed(sources.len(), |index| {
            let range = sources.get(index).map_or(IntervalRange::COUNTER, |entry| IntervalRange::of(entry.source));
            AtomicU32::new(range.default)
        })
        .ok_or(HalError::NoMemory)?;
        let raw = try_boxed(usize::from(MAX_RAW), |_| RawSlot::default()).ok_or(HalError::NoMemory)?;
        let (handler, handler_owner) = (AtomicU64::new(0), AtomicU64::new(0));
        let enumerated = selection::enumerated(cpu, selection.interface);
        Ok(Self {
            selection,
            hypervisor: Hypervisor::of(cpu),
            workarounds: if matches!(selection.interface, Kind::Emon | Kind::Amd64) {
                Workarounds::of_processor(cpu)
            } else {
                Workarounds::default()
            },
            interface,
            enumerated,
            cells_per_cpu,
            is_stateless: states.is_none(),
            states: states.unwrap_or_default(),
            probed_types: hybrid::ProbedTypes::new(),
            per_cpu,
            intervals,
            raw,
            raw_taken: AtomicU16::new(0),
            handler,
            handler_owner,
        })
    }
}

impl<E> Hal<E> {
    /// Returns the interface that was chosen, and the reason.
    #[must_use]
    pub const fn selection(&self) -> Selection {
        self.selection
    }

    /// Returns the hypervisor between the system and the boot processor.
    #[must_use]
    pub const fn hypervisor(&self) -> Hypervisor {
        self.hypervisor
    }

    /// Returns the workarounds that the boot processor needs.
    #[must_use]
    pub const fn workarounds(&self) -> Workarounds {
        self.workarounds
    }

    /// Returns whether CPUID enumerates the registers of the interface. If not, none of them may be touched.
    #[must_use]
    pub const fn is_enumerated(&self) -> bool {
        self.enumerated
    }

    /// Returns the interface in use, as it is on the boot processor.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Returns the interface as it is on a processor: with the counters of that processor, once it was
    /// [probed](Self::probe).
    #[must_use]
    #[inline]
    pub fn interface_of(&self, processor: ProcessorIndex) -> Interface {
        self.pmu(processor).map_or(self.interface, |pmu| self.interface_with(pmu))
    }

    /// Returns the interface with the capabilities of a processor.
    #[inline]
    fn interface_with(&self, pmu: &PerCpuPmu) -> Interface {
        self.interface.with_capabilities(pmu.snapshot.capabilities())
    }

    /// As [`interface_with`](Self::interface_with), also for the functions that do not take [`CpuCounters`] and for
    /// those that decide which events the processor supports.
    fn whole_interface_with(&self, pmu: &PerCpuPmu) -> Interface {
        self.interface.of_processor(pmu.snapshot.capabilities())
    }

    /// Returns the bytes of the state of the counters.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        size_of_val(&*self.states)
    }

    /// Returns what a processor owns, or `None` if it does not exist.
    #[must_use]
    #[inline]
    pub fn per_cpu(&self, processor: ProcessorIndex) -> Option<&PerCpu<E>> {
        self.per_cpu.get(processor.as_usize())
    }

    /// Iterates over what each processor owns, in their order.
    pub fn each_cpu(&self) -> impl Iterator<Item = &PerCpu<E>> {
        self.per_cpu.iter()
    }

    #[inline]
    fn pmu(&self, processor: ProcessorIndex) -> Option<&PerCpuPmu> {
        self.per_cpu(processor).map(|per_cpu| &per_cpu.pmu)
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
        let cells_per_cpu = usize::from(self.cells_per_cpu);
        let begin = processor.as_usize() * cells_per_cpu;
        Some(match self.states.get(begin..begin + cells_per_cpu) {
            Some(cells) => CpuCounters { cells, active: pmu.active(), pmu, raw: &self.raw },
            None => CpuCounters { pmu, ..CpuCounters::default() },
        })
    }
}

/// Returns what so many processors own.
// Never inlined: the caller would have one of them on its stack all the time.
#[inline(never)]
fn per_cpus<E: Default>(count: u32, capabilities: u64) -> Result<Box<[PerCpu<E>]>, HalError> {
    try_boxed(count as usize, |_| PerCpu::new(capabilities)).ok_or(HalError::NoMemory)
}
