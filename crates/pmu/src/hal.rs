//! The HAL functions (HAL PMU design, section 2) over a profile interface. Each returns a status with its cause.
//!
//! [`Hal`] is shared by all processors. The caller of the functions that plan (which counter, source and interval)
//! holds a lock of its own. Functions that touch registers take a [`CurrentCpu`]: they run on that processor at
//! PROFILE_LEVEL.

mod counting;
mod error;
pub mod information;
mod interrupt;
mod ownership;
mod reservation;
mod sleep;
mod sources;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

pub use error::{HalError, MAX_RAW};

use crate::cpu::Cpuid;
use crate::current_cpu::ProcessorIndex;
use crate::hypervisor::Hypervisor;
use crate::interface::{Interface, ProfileInterface, Support};
use crate::interval::IntervalRange;
use crate::selection::{self, Selection};
use crate::source::ProfileSource;
use crate::state::{self, ActiveCell, CounterCell, CounterSet, CounterState, CpuCounters, PmuSnapshot, Total};

/// State of the counters of one processor.
#[derive(Debug)]
struct PerCpuPmu {
    /// Counters that count.
    active: ActiveCell,
    by_us: AtomicBool,
    known: PmuSnapshot,
    /// Counters, as a set, that may have overflowed without being served: a status register may still report them.
    stale: AtomicU32,
    /// Set from [`Hal::save`] to [`Hal::restore`]: the registers are about to be lost and must not be touched.
    asleep: AtomicBool,
}

impl PerCpuPmu {
    fn new(capabilities: u64) -> Self {
        Self {
            active: ActiveCell::default(),
            by_us: AtomicBool::default(),
            known: PmuSnapshot::new(capabilities),
            stale: AtomicU32::default(),
            asleep: AtomicBool::default(),
        }
    }

    fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    fn stale(&self) -> CounterSet {
        CounterSet::from_bits(self.stale.load(Ordering::Relaxed).into())
    }

    fn set_stale(&self, counters: CounterSet) {
        self.stale.store(counters.bits(), Ordering::Relaxed);
    }
}

/// HalpProfileInterface with its state and the intervals.
#[derive(Debug)]
pub struct Hal {
    selection: Selection,
    hypervisor: Hypervisor,
    /// Interface of the boot processor.
    interface: Interface,
    /// Whether CPUID enumerates the registers of the interface.
    enumerated: bool,
    /// Cells of a row: the number of counters of the processor that has most.
    places: u8,
    /// One row of cells per processor. `None` if memory was short.
    states: Option<Box<[CounterCell]>>,
    /// Running totals, in the order of `states`.
    totals: Box<[Total]>,
    /// Per processor: the active counters, the saved registers, the capabilities, and whether it sleeps.
    held: Box<[PerCpuPmu]>,
    /// One interval per row of the table of the interface.
    intervals: Box<[AtomicU32]>,
    /// Raw events in use, or 0 in a free slot. The state of a counter has the index of its slot.
    raw: Box<[AtomicU32]>,
    /// Address of the interrupt handler, or 0.
    handler: AtomicU64,
    /// Owner that registered it, or 0.
    handler_owner: AtomicU64,
}

/// A counter that overflowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// Number of the counter on the processor that was interrupted.
    pub counter: u8,
    /// Its state. [`Hal::source`] returns what it counts.
    pub state: CounterState,
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
    /// Row of the table of the interface, or a row made for a raw event.
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
}

impl Hal {
    /// Chooses the interface and allocates its state. `cpu` is the boot processor.
    ///
    /// # Errors
    /// [`HalError::NoMemory`] if memory is short. If it is short for the state of the counters, the HAL stops the
    /// machine on Amd64, and this refuses. On Emon every source becomes unsupported, as in the HAL.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn new(cpu: &impl Cpuid, maximum_processors: u32) -> Result<Self, HalError> {
        Self::with_states(cpu, maximum_processors, 0, state::allocate)
    }

    /// As [`new`](Self::new), with at least `most_counters` counters per processor, because other processors may have
    /// more than the boot processor, and with the allocation of the states by the caller.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn with_states(
        cpu: &impl Cpuid,
        maximum_processors: u32,
        most_counters: u8,
        allocate: impl FnOnce(u32, u8) -> Option<Box<[CounterCell]>>,
    ) -> Result<Self, HalError> {
        let selection = Selection::of_boot_processor(cpu);
        let interface = Interface::new(selection.interface, cpu);
        let places = interface.counters().max(most_counters).min(CounterSet::MOST);
        let states = allocate(maximum_processors, places);
        if states.is_none() && !matches!(interface, Interface::Emon(_)) {
            return Err(HalError::NoMemory);
        }
        let totals = state::allocate(maximum_processors, places).ok_or(HalError::NoMemory)?;
        let capabilities = interface.capabilities();
        let held = filled(maximum_processors as usize, |_| PerCpuPmu::new(capabilities))?;
        let sources = interface.sources();
        let intervals = filled(sources.len(), |index| {
            let range = sources.get(index).map_or(IntervalRange::COUNTER, |row| IntervalRange::of(row.source));
            AtomicU32::new(range.default)
        })?;
        let raw = filled(usize::from(MAX_RAW), |_| AtomicU32::new(0))?;
        let (handler, handler_owner) = (AtomicU64::new(0), AtomicU64::new(0));
        let enumerated = selection::enumerated(cpu, selection.interface);
        Ok(Self {
            selection,
            hypervisor: Hypervisor::of(cpu),
            interface,
            enumerated,
            places,
            states,
            totals,
            held,
            intervals,
            raw,
            handler,
            handler_owner,
        })
    }

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
        self.held
            .get(processor.as_usize())
            .map_or(self.interface, |held| self.interface.with_capabilities(held.known.capabilities()))
    }

    /// Returns the bytes of the state of the counters.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.states.as_deref().map_or(0, size_of_val)
    }

    /// Returns the cells and totals of a processor. The row is empty if the processor does not exist or memory was
    /// short.
    #[must_use]
    pub fn row(&self, processor: ProcessorIndex) -> CpuCounters<'_> {
        let places = usize::from(self.places);
        let begin = processor.as_usize() * places;
        let range = begin..begin + places;
        let cells = self.states.as_deref().and_then(|states| states.get(range.clone()));
        match (cells, self.totals.get(range), self.held.get(processor.as_usize())) {
            (Some(cells), Some(totals), Some(held)) => {
                CpuCounters { cells, totals, active: held.active.load(), known: &held.known, raw: &self.raw }
            }
            _ => CpuCounters::default(),
        }
    }
}

/// Returns a slice of `length` items, without a panic if memory is short.
fn filled<T>(length: usize, make: impl FnMut(usize) -> T) -> Result<Box<[T]>, HalError> {
    let mut items = Vec::new();
    items.try_reserve_exact(length).map_err(|_| HalError::NoMemory)?;
    items.extend((0..length).map(make));
    Ok(items.into_boxed_slice())
}
