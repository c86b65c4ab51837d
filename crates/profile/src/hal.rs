//! The HAL functions (seed 003, section 2) over a profile interface, with what the document wishes for: a
//! status and a cause from each.
//!
//! [`Hal`] is shared by all processors. Who plans (which counter, which source, which interval) holds a
//! lock of its own; what touches registers runs on the processor concerned at PROFILE_LEVEL.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::cpu::Cpu;
use crate::interface::{Interface, ProfileInterface, Support};
use crate::interval::IntervalRange;
use crate::selection::Selection;
use crate::source::{ProfileSource, Source};
use crate::state::{self, CounterCell, CounterSet, CounterState, Row};

/// Why a HAL function refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HalError {
    /// No table has this number.
    #[error("no profile source has the number {0}")]
    UnknownSource(Source),
    /// The source can not be had here.
    #[error("profile source {0} can not be had on this machine: {1:?}")]
    Unsupported(Source, Support),
    /// The memory for the counters' state could not be had.
    #[error("no memory for the counters' state")]
    NoMemory,
}

/// HAL_PROFILE_SOURCE_INFORMATION, with what the document wishes for.
#[derive(Debug, Clone, Copy)]
pub struct SourceInformation {
    /// The row of the interface's table.
    pub source: &'static ProfileSource,
    /// Whether it can be had.
    pub support: Support,
    /// The interval in force.
    pub interval: u32,
    /// What intervals it takes.
    pub range: IntervalRange,
}

/// HalpProfileInterface, its state, and the intervals.
#[derive(Debug)]
pub struct Hal {
    selection: Selection,
    interface: Interface,
    /// One row of [`ProfileInterface::counters`] cells for each processor; `None` when memory was short.
    states: Option<Box<[CounterCell]>>,
    /// For each processor what [`ProfileInterface::initialize`] found there.
    found: Box<[AtomicU64]>,
    /// For each row of the interface's table.
    intervals: Box<[AtomicU32]>,
}

impl Hal {
    /// Chooses the interface and makes its state. Runs on the boot processor at PASSIVE_LEVEL.
    ///
    /// # Errors
    /// [`HalError::NoMemory`] where memory is short. For the state of the counters that is so on Amd64,
    /// where the HAL stops the machine; on Emon it makes every source unsupported, as in the HAL.
    pub fn new(cpu: &impl Cpu, maximum_processors: u32) -> Result<Self, HalError> {
        Self::with_states(cpu, maximum_processors, state::allocate)
    }

    /// [`new`](Self::new) with the allocation in the caller's hands.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_states(
        cpu: &impl Cpu,
        maximum_processors: u32,
        allocate: impl FnOnce(u32, u8) -> Option<Box<[CounterCell]>>,
    ) -> Result<Self, HalError> {
        let selection = Selection::of_boot_processor(cpu);
        let interface = Interface::new(selection.interface, cpu);
        let states = allocate(maximum_processors, interface.counters());
        if states.is_none() && !matches!(interface, Interface::Emon(_)) {
            return Err(HalError::NoMemory);
        }
        let found = filled(maximum_processors as usize, |_| AtomicU64::new(0))?;
        let sources = interface.kind().sources();
        let intervals = filled(sources.len(), |index| {
            let range = sources.get(index).map_or(IntervalRange::COUNTER, |row| IntervalRange::of(row.source));
            AtomicU32::new(range.default)
        })?;
        Ok(Self { selection, interface, states, found, intervals })
    }

    /// What was chosen, and why.
    #[must_use]
    pub const fn selection(&self) -> Selection {
        self.selection
    }

    /// The interface in use.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// Bytes of the counters' state.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.states.as_deref().map_or(0, size_of_val)
    }

    /// The cells of a processor; none where there is no such processor or no memory.
    #[must_use]
    pub fn row(&self, processor: u32) -> Row<'_> {
        let counters = usize::from(self.interface.counters());
        let begin = processor as usize * counters;
        Row(self.states.as_deref().and_then(|states| states.get(begin..begin + counters)).unwrap_or_default())
    }

    /// HalQueryProfileSourceList: every source of the interface, in ascending order.
    pub fn source_list(&self) -> impl Iterator<Item = SourceInformation> {
        (0_u16..).zip(self.interface.kind().sources()).map(|(index, source)| self.information(index, source))
    }

    /// HalProfileSourceInformation.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`].
    pub fn source_information(&self, source: Source) -> Result<SourceInformation, HalError> {
        let (index, row) = self.interface.find(source).ok_or(HalError::UnknownSource(source))?;
        Ok(self.information(index, row))
    }

    fn information(&self, index: u16, source: &'static ProfileSource) -> SourceInformation {
        let range = IntervalRange::of(source.source);
        let interval =
            self.intervals.get(usize::from(index)).map_or(range.default, |cell| cell.load(Ordering::Relaxed));
        SourceInformation { source, support: self.support(source), interval, range }
    }

    fn support(&self, source: &ProfileSource) -> Support {
        if self.states.is_none() { Support::NoMemory } else { self.interface.support(source) }
    }

    /// The index of a source that can be started.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`].
    pub fn startable(&self, source: Source) -> Result<u16, HalError> {
        let (index, row) = self.interface.find(source).ok_or(HalError::UnknownSource(source))?;
        match self.support(row) {
            Support::Supported => Ok(index),
            support => Err(HalError::Unsupported(source, support)),
        }
    }

    /// HalProfileSourceInterval: the interval from the next start on, clamped to the source's range. Answers
    /// the one before and the one in force.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`].
    pub fn set_interval(&self, source: Source, wanted: u32) -> Result<(u32, u32), HalError> {
        let index = self.startable(source)?;
        let interval = IntervalRange::of(source).clamp(wanted);
        let previous =
            self.intervals.get(usize::from(index)).map_or(interval, |cell| cell.swap(interval, Ordering::Relaxed));
        Ok((previous, interval))
    }

    /// Gives a free counter of `processor` to what `state` says (its owner must not be zero); `None` where
    /// all are taken. Nothing counts before [`start`](Self::start).
    pub fn reserve(&self, processor: u32, state: CounterState) -> Option<u8> {
        let row = self.row(processor);
        let counter = row.counters(CounterState::is_free).iter().next()?;
        row.set(counter, state.with_active(false));
        Some(counter)
    }

    /// Takes `counters` of `processor` back; they must have been stopped.
    pub fn free(&self, processor: u32, counters: CounterSet) {
        for counter in counters.iter() {
            self.row(processor).set(counter, CounterState::FREE);
        }
    }

    /// InitializeProfiling on the current processor, which is `processor`. PROFILE_LEVEL.
    pub fn initialize(&self, cpu: &impl Cpu, processor: u32) {
        let found = self.interface.initialize(cpu);
        if let Some(cell) = self.found.get(processor as usize) {
            cell.store(found, Ordering::Relaxed);
        }
    }

    /// Leaves the current processor, which is `processor`, as [`initialize`](Self::initialize) found it, but
    /// with clear select registers. PROFILE_LEVEL.
    pub fn release(&self, cpu: &impl Cpu, processor: u32) {
        let found = self.found.get(processor as usize).map_or(0, |cell| cell.load(Ordering::Relaxed));
        self.interface.release(cpu, found);
    }

    /// HalStartProfileInterrupt on the current processor, which is `processor`, for counters that were
    /// [reserved](Self::reserve) there. PROFILE_LEVEL.
    pub fn start(&self, cpu: &impl Cpu, processor: u32, counters: CounterSet) {
        let row = self.row(processor);
        self.interface.enable(cpu, row, counters);
        for counter in counters.iter() {
            row.set(counter, row.get(counter).with_active(true));
        }
    }

    /// HalStopProfileInterrupt on the current processor, which is `processor`. PROFILE_LEVEL.
    pub fn stop(&self, cpu: &impl Cpu, processor: u32, counters: CounterSet) {
        let row = self.row(processor);
        self.interface.disable(cpu, row, counters);
        for counter in counters.iter() {
            row.set(counter, row.get(counter).with_active(false));
        }
    }

    /// What a counter of the current processor has counted since its start. PROFILE_LEVEL.
    pub fn count(&self, cpu: &impl Cpu, counter: u8) -> u64 {
        cpu.rdpmc(counter) & (u64::MAX >> 64_u8.saturating_sub(self.interface.width()).min(63))
    }
}

/// A slice made without a panic where memory is short.
fn filled<T>(length: usize, make: impl FnMut(usize) -> T) -> Result<Box<[T]>, HalError> {
    let mut items = Vec::new();
    items.try_reserve_exact(length).map_err(|_| HalError::NoMemory)?;
    items.extend((0..length).map(make));
    Ok(items.into_boxed_slice())
}
