//! The HAL functions (HAL PMU design, section 2) over a profile interface. Each returns a status with its cause.
//!
//! [`Hal`] is shared by all processors. The caller of the functions that plan (which counter, source and interval)
//! holds a lock of its own. Functions that touch registers take a [`CurrentCpu`]: they run on that processor at
//! PROFILE_LEVEL.

mod first_access;
pub mod information;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::cpu::{Cpu, Cpuid};
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::debug_store::Facilities;
use crate::hypervisor::Hypervisor;
use crate::interface::{Enabled, Interface, ProfileInterface, Reloaded, Support};
use crate::interval::IntervalRange;
use crate::lvt_pmi;
use crate::selection::{self, Selection};
use crate::source::{ProfileSource, Source};
use crate::state::{self, ActiveCell, CounterCell, CounterSet, CounterState, CpuCounters, PmuSnapshot, Total};
use first_access::FirstAccesses;

/// Number of different raw events that can be in use at a time.
pub const MAX_RAW: u16 = 256;

/// Reason for which a HAL function refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HalError {
    /// No table has this source.
    #[error("no profile source has the number {0}")]
    UnknownSource(Source),
    /// The source is unsupported here.
    #[error("profile source {0} is unsupported on this machine: {1:?}")]
    Unsupported(Source, Support),
    /// The source is a raw event. Each start states the interval of a raw event.
    #[error("raw event {0} has no interval of its own")]
    NoInterval(Source),
    /// All slots of raw events are in use.
    #[error("no more than {MAX_RAW} different raw events can be in use at a time")]
    TooManyRaw(Source),
    /// No counter counts the source.
    #[error("profile source {0} is served by a timer, not by a counter")]
    NoCounter(Source),
    /// The counters of the source do not interrupt.
    #[error("profile source {0} can be counted here and not sampled: the counters do not interrupt")]
    NoInterrupt(Source),
    /// Another owner has registered the interrupt handler.
    #[error("the interrupt handler is registered by another owner")]
    HandlerTaken,
    /// The information class does not concern profiling.
    #[error("information class {0} has nothing to do with profiling")]
    InvalidClass(u32),
    /// The length of the buffer differs from that of the structure of the class.
    #[error("the buffer has {found} bytes, the structure {wanted}")]
    LengthMismatch {
        /// Bytes of the structure.
        wanted: usize,
        /// Bytes of the buffer.
        found: usize,
    },
    /// There is no memory for the state of the counters.
    #[error("no memory for the counters' state")]
    NoMemory,
}

/// A counter that overflowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// Number of the counter on the processor that was interrupted.
    pub counter: u8,
    /// Its state. [`Hal::source`] returns what it counts.
    pub state: CounterState,
}

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
    /// Per processor: the results of the first accesses.
    first_accesses: Box<[FirstAccesses]>,
    /// One interval per row of the table of the interface.
    intervals: Box<[AtomicU32]>,
    /// Raw events in use, or 0 in a free slot. The state of a counter has the index of its slot.
    raw: Box<[AtomicU32]>,
    /// Address of the interrupt handler, or 0.
    handler: AtomicU64,
    /// Owner that registered it, or 0.
    handler_owner: AtomicU64,
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
        let first_accesses = filled(maximum_processors as usize, |_| FirstAccesses::default())?;
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
            first_accesses,
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

    /// As [`interface_of`](Self::interface_of), also for the functions that take no row of states.
    fn whole_interface_of(&self, processor: ProcessorIndex) -> Interface {
        self.held
            .get(processor.as_usize())
            .map_or(self.interface, |held| self.interface.of_processor(held.known.capabilities()))
    }

    /// Reads the capabilities of the current processor, which may differ from those of the boot processor. Touches no
    /// register. Does nothing while the processor is [held](Self::holds).
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn probe(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(held) = self.held.get(current.index().as_usize())
            && !held.by_us.load(Ordering::Relaxed)
        {
            held.known.set_capabilities(Interface::new(self.selection.interface, current.cpu()).capabilities());
        }
    }

    /// Stores which counters of `processor` record which events precisely, as [`debug_store`](crate::debug_store) found
    /// them.
    pub fn probe_precise(&self, processor: ProcessorIndex, Facilities { counters, events, .. }: Facilities) {
        if let Some(held) = self.held.get(processor.as_usize()) {
            held.known
                .set_capabilities(self.whole_interface_of(processor).with_precise(counters, events).capabilities());
        }
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

    /// Returns whether the registers of `processor` must not be touched because it [sleeps](Self::save).
    ///
    /// # IRQL
    /// PROFILE_LEVEL on that processor. Elsewhere the answer may be stale.
    #[must_use]
    pub fn is_asleep(&self, processor: ProcessorIndex) -> bool {
        self.held.get(processor.as_usize()).is_some_and(PerCpuPmu::is_asleep)
    }

    fn set_active(&self, processor: ProcessorIndex, counters: CounterSet, active: bool) {
        let row = self.row(processor);
        for counter in counters.iter() {
            row.set(counter, row.get(counter).with_active(active));
        }
        if let Some(held) = self.held.get(processor.as_usize()) {
            if held.is_asleep() {
                held.active.clear();
            } else {
                held.active.update(row.cells);
            }
        }
    }

    /// HalQueryProfileSourceList: returns every source of the interface, in ascending order.
    pub fn source_list(&self) -> impl Iterator<Item = SourceInformation> {
        (0_u16..).zip(self.interface.sources()).map(|(index, source)| self.information(index, *source))
    }

    /// HalProfileSourceInformation: returns what is known about a source, including raw events that are not in use.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`].
    pub fn source_information(&self, source: Source) -> Result<SourceInformation, HalError> {
        if let Some(event) = source.raw() {
            return Ok(self.information(u16::MAX, ProfileSource::of_raw(event)));
        }
        let (index, row) = self.interface.find(source).ok_or(HalError::UnknownSource(source))?;
        Ok(self.information(index, *row))
    }

    fn information(&self, index: u16, source: ProfileSource) -> SourceInformation {
        let (range, support) = (IntervalRange::of(source.source), self.support(&source));
        let is_refused = source.source.raw().is_some() && support != Support::Supported;
        let counters = if source.source == Source::TIME || is_refused {
            CounterSet::NONE
        } else {
            self.interface.counters_for(&source)
        };
        SourceInformation { source, support, interval: self.interval(index), range, counters }
    }

    /// Returns the support on some processor, or that of the boot processor if no processor supports the source.
    fn support(&self, source: &ProfileSource) -> Support {
        let support = self.support_by(&self.interface, source);
        let of = |held: &PerCpuPmu| self.interface.with_capabilities(held.known.capabilities());
        let elsewhere = || self.held.iter().any(|held| self.support_by(&of(held), source) == Support::Supported);
        if support != Support::Supported && elsewhere() { Support::Supported } else { support }
    }

    fn support_by(&self, interface: &Interface, source: &ProfileSource) -> Support {
        match source.source.raw() {
            _ if self.states.is_none() => Support::NoMemory,
            Some(event) => interface.raw_support(event),
            None => interface.support(source),
        }
    }

    /// Checks whether a source can be started on some processor.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`].
    pub fn startable(&self, source: Source) -> Result<(), HalError> {
        match self.source_information(source)?.support {
            Support::Supported => Ok(()),
            support => Err(HalError::Unsupported(source, support)),
        }
    }

    /// Frees the raw-event slots for which `is_used` returns false. Its argument is the [index](CounterState::event) of
    /// the slot. No counter may count an event that is freed. The caller holds the planning lock.
    ///
    /// # IRQL
    /// Any.
    pub fn keep_raw(&self, is_used: impl Fn(u16) -> bool) {
        for (index, place) in self.raw_places() {
            if !is_used(index) {
                place.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Returns the slots of raw events, each with the index that the state of a counter has for it.
    fn raw_places(&self) -> impl Iterator<Item = (u16, &AtomicU32)> {
        let first = u16::try_from(self.interface.sources().len()).unwrap_or(u16::MAX);
        (first..).zip(&self.raw)
    }

    /// Returns the index of a source: of its row, or of the slot of a raw event, which is taken if the event has none
    /// yet.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::TooManyRaw`].
    fn index_of(&self, source: Source) -> Result<u16, HalError> {
        if source.raw().is_none() {
            return self.interface.find(source).map(|(index, _)| index).ok_or(HalError::UnknownSource(source));
        }
        let place_with = |number: u32| self.raw_places().find(|(_, place)| place.load(Ordering::Relaxed) == number);
        let (index, place) = place_with(source.0).or_else(|| place_with(0)).ok_or(HalError::TooManyRaw(source))?;
        place.store(source.0, Ordering::Relaxed);
        Ok(index)
    }

    /// Returns the counters of `processor` that can count what `state` states.
    #[must_use]
    pub fn counters_for(&self, processor: ProcessorIndex, state: CounterState) -> CounterSet {
        let Some(source) = self.profile_source(state) else { return CounterSet::NONE };
        let interface = self.interface_of(processor);
        if state.precise() { interface.precise(&source) } else { interface.counters_for(&source) }
    }

    /// Returns what a counter in this state counts.
    #[must_use]
    pub fn profile_source(&self, state: CounterState) -> Option<ProfileSource> {
        self.row(ProcessorIndex::BOOT).source_of(self.interface.sources(), state)
    }

    /// Checks whether `processor` can count what `state` states.
    ///
    /// # Errors
    /// [`HalError::Unsupported`].
    pub fn check_on(&self, processor: ProcessorIndex, state: CounterState) -> Result<(), HalError> {
        let source = self.row(processor).source_of(self.interface.sources(), state);
        match source.map(|source| (source.source, self.support_by(&self.interface_of(processor), &source))) {
            None | Some((_, Support::Supported)) => Ok(()),
            Some((source, support)) => Err(HalError::Unsupported(source, support)),
        }
    }

    /// HalProfileSourceInterval: sets the interval from the next start on, clamped to the range of the source. Returns
    /// the previous interval and the one in force.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`], [`HalError::NoInterval`] for a raw event.
    pub fn set_interval(&self, source: Source, wanted: u32) -> Result<(u32, u32), HalError> {
        self.startable(source)?;
        if source.raw().is_some() {
            return Err(HalError::NoInterval(source));
        }
        let index = self.index_of(source)?;
        let interval = IntervalRange::of(source).clamp(wanted);
        let previous =
            self.intervals.get(usize::from(index)).map_or(interval, |cell| cell.swap(interval, Ordering::Relaxed));
        Ok((previous, interval))
    }

    /// Returns the state of a counter for a source, with an interrupt after every interval in force or without. The
    /// caller adds the modes and the owner. A raw event takes a slot until [`keep_raw`](Self::keep_raw) frees it. The
    /// caller holds the planning lock.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`], [`HalError::NoCounter`] for ProfileTime,
    /// [`HalError::NoInterrupt`] if the counters do not interrupt, [`HalError::TooManyRaw`].
    pub fn state_for(&self, source: Source, interrupt: bool) -> Result<CounterState, HalError> {
        self.startable(source)?;
        if source == Source::TIME {
            return Err(HalError::NoCounter(source));
        }
        if interrupt && !self.interface.interrupts() {
            return Err(HalError::NoInterrupt(source));
        }
        let event = self.index_of(source)?;
        let interval = if interrupt { self.interval(event) } else { 0 };
        Ok(CounterState::FREE.of(event).with_interrupt(interrupt).with_interval(interval))
    }

    /// Reserves a free counter of `processor` for `state`, which must have an owner. Returns `None` if all are taken.
    /// The counter does not count before [`start`](Self::start).
    pub fn reserve(&self, processor: ProcessorIndex, state: CounterState) -> Option<u8> {
        let mut assigned = [0];
        self.reserve_all(processor, &[state], &mut assigned).ok()?;
        let [counter] = assigned;
        Some(counter)
    }

    /// Reserves counters for several states at once, because one choice can exclude another. Each state gets a counter
    /// at its own index of `assigned`, or no state gets one.
    ///
    /// # Errors
    /// The index of a state for which there is no counter.
    pub fn reserve_all(
        &self,
        processor: ProcessorIndex,
        wanted: &[CounterState],
        assigned: &mut [u8],
    ) -> Result<(), usize> {
        let row = self.row(processor);
        self.interface_of(processor).assign(row, wanted, assigned)?;
        for (state, counter) in wanted.iter().zip(assigned) {
            row.set(*counter, state.with_active(false));
            if let Some(total) = row.total(*counter) {
                total.clear();
            }
        }
        Ok(())
    }

    /// Sets the interval of a counter of `processor` from its next load on.
    ///
    /// # IRQL
    /// PROFILE_LEVEL on that processor, or any while the counter does not run.
    pub fn set_counter_interval(&self, processor: ProcessorIndex, counter: u8, interval: u32) {
        let row = self.row(processor);
        row.set(counter, row.get(counter).with_interval(interval));
    }

    /// Gives a counter of the current processor to another owner.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn hand_over(&self, current: CurrentCpu<'_, impl Cpu>, counter: u8, owner: u16) {
        let row = self.row(current.index());
        row.set(counter, row.get(counter).owned_by(owner));
    }

    /// Frees `counters` of `processor`, which must have been stopped.
    pub fn free(&self, processor: ProcessorIndex, counters: CounterSet) {
        for counter in counters.iter() {
            self.row(processor).set(counter, CounterState::FREE);
        }
    }

    /// Returns a counter of the current processor that another program has enabled. Reads one register per counter up
    /// to that one. Reads none if the processor is held or asleep.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn in_use_elsewhere(&self, current: CurrentCpu<'_, impl Cpu>) -> Option<Enabled> {
        let held = self.held.get(current.index().as_usize())?;
        let is_open = !held.by_us.load(Ordering::Relaxed) && !held.is_asleep();
        is_open.then(|| self.interface_of(current.index()).enabled(current.cpu())).flatten()
    }

    /// InitializeProfiling on the current processor. Returns whether its counters work; if not, none may be started
    /// there. If the processor is asleep, [`restore`](Self::restore) initializes it.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn initialize(&self, current: CurrentCpu<'_, impl Cpu>) -> bool {
        let Some(held) = self.held.get(current.index().as_usize()) else { return false };
        let is_first = !held.by_us.swap(true, Ordering::Relaxed);
        if held.is_asleep() {
            return true;
        }
        let interface = self.whole_interface_of(current.index()).examined(current.cpu());
        held.known.set_capabilities(interface.capabilities());
        let saved = interface.initialize(current.cpu());
        if is_first {
            held.known.set_saved(saved);
        }
        held.set_stale(CounterSet::NONE);
        interface.readback_ok(current.cpu())
    }

    /// Returns whether the driver holds the counters of `processor`: from [`initialize`](Self::initialize) to
    /// [`release`](Self::release).
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn holds(&self, processor: ProcessorIndex) -> bool {
        self.held.get(processor.as_usize()).is_some_and(|held| held.by_us.load(Ordering::Relaxed))
    }

    /// Restores what [`initialize`](Self::initialize) found on the current processor, with the select registers
    /// cleared. Does nothing if the processor is not held.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn release(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(held) = self.held.get(current.index().as_usize())
            && held.by_us.swap(false, Ordering::Relaxed)
            && !held.is_asleep()
        {
            self.whole_interface_of(current.index()).release(current.cpu(), held.known.saved());
        }
    }

    /// HalStartProfileInterrupt on the current processor, for counters that were [reserved](Self::reserve) there.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn start(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        let row = self.row(current.index());
        if self.is_asleep(current.index()) {
            self.set_active(current.index(), counters, true);
        } else if !counters.is_empty() {
            let interface = self.interface.with_capabilities(row.known.capabilities());
            for counter in counters.iter() {
                if let Some(total) = row.total(counter) {
                    total.loaded(self.initial_count(current.index(), counter));
                }
            }
            if let Some(held) = self.held.get(current.index().as_usize()) {
                let stale = held.stale().and(counters).and(row.counters(|state| state.interrupt()));
                if !stale.is_empty() {
                    interface.forget(current.cpu(), stale);
                    held.set_stale(held.stale().without(stale));
                }
            }
            interface.enable(current.cpu(), row, counters);
            self.set_active(current.index(), counters, true);
        }
    }

    /// HalStopProfileInterrupt on the current processor. Adds the values of the counters to their totals, which remain
    /// for [`total`](Self::total). Returns the counters that had overflowed without being served yet: their interrupt
    /// comes late, or not at all.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn stop(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) -> OverflowStatus {
        let row = self.row(current.index());
        let mut overflowed = CounterSet::NONE;
        if self.is_asleep(current.index()) {
            self.set_active(current.index(), counters, false);
        } else if !counters.is_empty() {
            let interface = self.interface.with_capabilities(row.known.capabilities());
            interface.disable(current.cpu(), row, counters);
            let mut doubtful = CounterSet::NONE;
            for counter in counters.iter() {
                let state = row.get(counter);
                if let (true, Some(total)) = (state.active(), row.total(counter)) {
                    let (value, width) = (interface.read(current.cpu(), counter), interface.width_of(counter));
                    if state.precise() {
                        total.follow(value, 64_u8.saturating_sub(width));
                    } else {
                        total.update(value, width);
                    }
                    if !state.interrupt() {
                        doubtful = doubtful.with(counter); // it may have wrapped
                    } else if value & state::top_bit(state::mask(width)) == 0 {
                        overflowed = overflowed.with(counter);
                    }
                }
            }
            if let Some(held) = self.held.get(current.index().as_usize()) {
                held.set_stale(held.stale().or(doubtful).or(overflowed));
            }
            self.set_active(current.index(), counters, false);
        }
        OverflowStatus(overflowed)
    }

    /// Serves a performance monitor interrupt of the current processor: CheckOverflowStatus, then a load of every
    /// counter that overflowed, each with a call of `handler`. Touches nothing while no handler is registered or the
    /// processor is [asleep](Self::is_asleep). Nothing allocates, locks or waits.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[inline]
    pub fn interrupt(&self, current: CurrentCpu<'_, impl Cpu>, mut handler: impl FnMut(Overflow)) -> OverflowStatus {
        if self.interrupt_handler().is_none() {
            return OverflowStatus(CounterSet::NONE);
        }
        let row = self.row(current.index());
        if row.active.all.is_empty() {
            // While a processor is asleep none of its counters is active.
            if !self.is_asleep(current.index()) {
                self.acknowledge(current);
                lvt_pmi::unmask(current.cpu());
            }
            return OverflowStatus(CounterSet::NONE);
        }
        let interface = self.interface.with_capabilities(row.known.capabilities());
        let overflowed =
            interface.serve(current.cpu(), row, |Reloaded { counter, state, value, initial, missing_bits }| {
                if let Some(total) = row.total(counter) {
                    total.overflowed(value, initial, missing_bits);
                }
                handler(Overflow { counter, state });
            });
        OverflowStatus(overflowed)
    }

    /// Clears the overflows of the driver's counters in the status register of the current processor, if the processor
    /// is held and awake.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    #[cold]
    pub fn acknowledge(&self, current: CurrentCpu<'_, impl Cpu>) {
        if self.holds(current.index()) && !self.is_asleep(current.index()) {
            self.whole_interface_of(current.index()).acknowledge(current.cpu());
        }
    }

    /// Stops all interrupts on the current processor: `counters`, which were stopped, lose their interrupt bits, the
    /// status is cleared, and the entry of the local vector table is masked. The next [`start`](Self::start) sets a
    /// counter up again, but does not unmask the entry. Does nothing on a processor that sleeps.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn silence(&self, current: CurrentCpu<'_, impl Cpu>, counters: CounterSet) {
        if self.is_asleep(current.index()) {
            return;
        }
        if self.holds(current.index()) {
            self.interface_of(current.index()).disarm(current.cpu(), self.row(current.index()), counters);
        }
        self.acknowledge(current);
        lvt_pmi::mask(current.cpu());
    }

    /// Runs `work` while all counters of the current processor are frozen, if one register freezes them all. On a
    /// processor that is asleep no counter runs.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn with_frozen<R>(&self, current: CurrentCpu<'_, impl Cpu>, work: impl FnOnce() -> R) -> R {
        if self.is_asleep(current.index()) {
            return work();
        }
        self.interface_of(current.index()).freeze(current.cpu(), self.row(current.index()));
        let result = work();
        self.interface_of(current.index()).unfreeze(current.cpu(), self.row(current.index()));
        result
    }

    /// Accounts one overflow of a precise counter of the current processor. The processor recorded it and loaded the
    /// counter with `initial`. Returns the interval that `initial` stands for. The counters are
    /// [frozen](Self::with_frozen), or do not run.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn recorded(&self, current: CurrentCpu<'_, impl Cpu>, counter: u8, initial: u64) -> u32 {
        let missing_bits = 64_u8.saturating_sub(self.interface_of(current.index()).width_of(counter));
        if let Some(total) = self.row(current.index()).total(counter) {
            total.overflowed(0, initial, missing_bits);
        }
        (initial.wrapping_neg() & 0xFFFF_FFFF) as u32
    }

    /// Returns the value with which a counter of `processor` is loaded at its start and after each overflow.
    #[must_use]
    pub fn initial_count(&self, processor: ProcessorIndex, counter: u8) -> u64 {
        self.row(processor).get(counter).initial_count(self.interface_of(processor).width_of(counter))
    }

    /// CheckOverflowStatus alone: returns the active counters with an interval that have overflowed. On a processor
    /// that is asleep or not [held](Self::holds) there is none.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn check_overflow(&self, current: CurrentCpu<'_, impl Cpu>) -> OverflowStatus {
        if self.is_asleep(current.index()) || !self.holds(current.index()) {
            return OverflowStatus(CounterSet::NONE);
        }
        OverflowStatus(
            self.whole_interface_of(current.index()).check_overflow(current.cpu(), self.row(current.index()).active),
        )
    }

    /// Prepares the current processor for the loss of its registers: stops its counters, keeps their counts, and leaves
    /// the registers as [`release`](Self::release) does. No register is touched until [`restore`](Self::restore): a
    /// start or a stop in between only changes the state. Returns what [`stop`](Self::stop) returns. Repeated calls
    /// change nothing.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn save(&self, current: CurrentCpu<'_, impl Cpu>) -> OverflowStatus {
        let Some(held) = self.held.get(current.index().as_usize()).filter(|held| !held.is_asleep()) else {
            return OverflowStatus(CounterSet::NONE);
        };
        let active = self.row(current.index()).active.all;
        let overflowed = self.stop(current, active);
        if self.holds(current.index()) {
            self.whole_interface_of(current.index()).release(current.cpu(), held.known.saved());
        }
        held.asleep.store(true, Ordering::Relaxed);
        self.set_active(current.index(), active, true);
        overflowed
    }

    /// Starts the counters that are active by their state again, whether or not the registers were lost. Does nothing
    /// without a [`save`](Self::save) before.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn restore(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(held) = self.held.get(current.index().as_usize())
            && held.asleep.swap(false, Ordering::Relaxed)
            && self.holds(current.index())
        {
            let active = self.row(current.index()).counters(|state| state.active());
            self.set_active(current.index(), active, false);
            held.known.set_saved(self.whole_interface_of(current.index()).initialize(current.cpu()));
            held.set_stale(CounterSet::NONE);
            self.start(current, active);
        }
    }

    /// Returns what a counter of the current processor has counted since its start, with one RDPMC if it runs. A
    /// counter that wraps is followed as long as this is called at least once per wrap.
    ///
    /// # IRQL
    /// PROFILE_LEVEL.
    pub fn count(&self, current: CurrentCpu<'_, impl Cpu>, counter: u8) -> u64 {
        let row = self.row(current.index());
        let interface = self.interface.with_capabilities(row.known.capabilities());
        match row.total(counter) {
            Some(total) if row.active.all.has(counter) => {
                let (value, width) = (interface.read(current.cpu(), counter), interface.width_of(counter));
                if row.get(counter).precise() {
                    total.follow(value, 64_u8.saturating_sub(width))
                } else {
                    total.update(value, width)
                }
            }
            total => total.map_or(0, Total::counted),
        }
    }

    /// Returns what a stopped counter had counted since its start.
    ///
    /// # IRQL
    /// Any.
    #[must_use]
    pub fn total(&self, processor: ProcessorIndex, counter: u8) -> u64 {
        self.row(processor).total(counter).map_or(0, Total::counted)
    }

    /// Returns the source that a counter in this state counts.
    #[must_use]
    pub fn source(&self, state: CounterState) -> Source {
        self.profile_source(state).map_or(Source::TIME, |source| source.source)
    }

    fn interval(&self, event: u16) -> u32 {
        let usual = IntervalRange::COUNTER.default;
        self.intervals.get(usize::from(event)).map_or(usual, |cell| cell.load(Ordering::Relaxed))
    }
}

/// Returns a slice of `length` items, without a panic if memory is short.
fn filled<T>(length: usize, make: impl FnMut(usize) -> T) -> Result<Box<[T]>, HalError> {
    let mut items = Vec::new();
    items.try_reserve_exact(length).map_err(|_| HalError::NoMemory)?;
    items.extend((0..length).map(make));
    Ok(items.into_boxed_slice())
}
