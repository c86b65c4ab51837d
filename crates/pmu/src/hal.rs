//! The HAL functions (seed 003, section 2) over a profile interface, with what the document wishes for: a
//! status and a cause from each.
//!
//! [`Hal`] is shared by all processors. Who plans (which counter, which source, which interval) holds a
//! lock of its own; what touches registers runs on the processor concerned at PROFILE_LEVEL.

pub mod information;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use crate::cpu::Cpu;
use crate::current_cpu::{CurrentCpu, ProcessorIndex};
use crate::debug_store::Facilities;
use crate::hypervisor::Hypervisor;
use crate::interface::{Enabled, Interface, ProfileInterface, Reloaded, Support};
use crate::interval::IntervalRange;
use crate::lvt_pmi;
use crate::selection::{self, Selection};
use crate::source::{ProfileSource, Source};
use crate::state::{self, ActiveCell, CounterCell, CounterSet, CounterState, CpuCounters, PmuSnapshot, Total};

/// How many different raw events can be in use at a time.
pub const MAX_RAW: u16 = 256;

/// Why a HAL function refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HalError {
    /// No table has this number.
    #[error("no profile source has the number {0}")]
    UnknownSource(Source),
    /// The source can not be had here.
    #[error("profile source {0} can not be had on this machine: {1:?}")]
    Unsupported(Source, Support),
    /// The source is a raw event: its interval is said with each start.
    #[error("raw event {0} has no interval of its own")]
    NoInterval(Source),
    /// All places for raw events are in use.
    #[error("no more than {MAX_RAW} different raw events can be in use at a time")]
    TooManyRaw(Source),
    /// The source is counted by no counter.
    #[error("profile source {0} is served by a timer, not by a counter")]
    NoCounter(Source),
    /// The source's counters can not interrupt.
    #[error("profile source {0} can be counted here and not sampled: the counters do not interrupt")]
    NoInterrupt(Source),
    /// The interrupt handler belongs to another.
    #[error("the interrupt handler is registered by another owner")]
    HandlerTaken,
    /// The information class is none that has to do with profiling.
    #[error("information class {0} has nothing to do with profiling")]
    InvalidClass(u32),
    /// The buffer is not as long as the structure of the class.
    #[error("the buffer has {found} bytes, the structure {wanted}")]
    LengthMismatch {
        /// Bytes of the structure.
        wanted: usize,
        /// Bytes of the buffer.
        found: usize,
    },
    /// The memory for the counters' state could not be had.
    #[error("no memory for the counters' state")]
    NoMemory,
}

/// A counter that overflowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// Which, of the processor that was interrupted.
    pub counter: u8,
    /// What it is set to do; [`Hal::source`] says of it what it counts.
    pub state: CounterState,
}

/// A processor's registers.
#[derive(Debug)]
struct PerCpuPmu {
    /// The counters that count.
    active: ActiveCell,
    by_us: AtomicBool,
    known: PmuSnapshot,
    /// Counters that may have overflowed with nobody having served it, as a set: a status register may still tell of it.
    stale: AtomicU32,
    /// Between [`Hal::save`] and [`Hal::restore`]: the registers are to be lost, and not touched.
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

/// OVERFLOW_STATUS: the counters that overflowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverflowStatus(pub CounterSet);

impl OverflowStatus {
    /// OVERFLOW_STATUS.Number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0.len()
    }
}

/// HAL_PROFILE_SOURCE_INFORMATION, with what the document wishes for.
#[derive(Debug, Clone, Copy)]
pub struct SourceInformation {
    /// The row of the interface's table, or one made for a raw event.
    pub source: ProfileSource,
    /// Whether it can be had.
    pub support: Support,
    /// The interval in force.
    pub interval: u32,
    /// What intervals it takes.
    pub range: IntervalRange,
    /// The counters that can count it; none for ProfileTime, which needs none. Sources exclude each other by nothing
    /// but the number of these.
    pub counters: CounterSet,
}

/// HalpProfileInterface, its state, and the intervals.
#[derive(Debug)]
pub struct Hal {
    selection: Selection,
    hypervisor: Hypervisor,
    /// The boot processor's.
    interface: Interface,
    /// CPUID promises the interface's registers.
    enumerated: bool,
    /// Cells of a row: as many as the processor with most counters has.
    places: u8,
    /// One row of cells for each processor; `None` when memory was short.
    states: Option<Box<[CounterCell]>>,
    /// Running totals, in the same order.
    totals: Box<[Total]>,
    /// For each processor what counts there, whether it is held, what [`ProfileInterface::initialize`] found there, what
    /// counters it has, and whether it sleeps.
    held: Box<[PerCpuPmu]>,
    /// For each row of the interface's table.
    intervals: Box<[AtomicU32]>,
    /// The numbers of the raw events in use, or 0. A counter's state has the place of its own here.
    raw: Box<[AtomicU32]>,
    /// Address of the interrupt handler, or 0.
    handler: AtomicU64,
    /// Who registered it.
    handler_owner: AtomicU64,
}

impl Hal {
    /// Chooses the interface and makes its state. Runs on the boot processor at PASSIVE_LEVEL.
    ///
    /// # Errors
    /// [`HalError::NoMemory`] where memory is short. For the state of the counters that is so on Amd64,
    /// where the HAL stops the machine; on Emon it makes every source unsupported, as in the HAL.
    pub fn new(cpu: &impl Cpu, maximum_processors: u32) -> Result<Self, HalError> {
        Self::with_states(cpu, maximum_processors, 0, state::allocate)
    }

    /// [`new`](Self::new) with room for at least so many counters of each processor, because others than the boot
    /// processor have more, and with the allocation in the caller's hands.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_states(
        cpu: &impl Cpu,
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

    /// What was chosen, and why.
    #[must_use]
    pub const fn selection(&self) -> Selection {
        self.selection
    }

    /// What stands between the system and the boot processor.
    #[must_use]
    pub const fn hypervisor(&self) -> Hypervisor {
        self.hypervisor
    }

    /// Whether CPUID promises that the interface's registers exist; if not, none of them may be touched.
    #[must_use]
    pub const fn is_enumerated(&self) -> bool {
        self.enumerated
    }

    /// The interface in use, as it is on the boot processor.
    #[must_use]
    pub const fn interface(&self) -> &Interface {
        &self.interface
    }

    /// The interface as it is on a processor: with that processor's own counters, once it was [looked at](Self::probe).
    #[must_use]
    #[inline]
    pub fn interface_of(&self, processor: ProcessorIndex) -> Interface {
        self.held
            .get(processor.as_usize())
            .map_or(self.interface, |held| self.interface.with_capabilities(held.known.capabilities()))
    }

    /// Looks at the current processor: its counters may be others than the boot processor's. Not
    /// while it is held. No register is touched. Any IRQL at which the processor stays the same.
    pub fn probe(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(held) = self.held.get(current.index().as_usize())
            && !held.by_us.load(Ordering::Relaxed)
        {
            held.known.set_capabilities(Interface::new(self.selection.interface, current.cpu()).capabilities());
        }
    }

    /// Notes which counters of `processor` record which events: what [`debug_store`](crate::debug_store) found.
    pub fn probe_precise(&self, processor: ProcessorIndex, Facilities { counters, events, .. }: Facilities) {
        if let Some(held) = self.held.get(processor.as_usize()) {
            held.known.set_capabilities(self.interface_of(processor).with_precise(counters, events).capabilities());
        }
    }

    /// Bytes of the counters' state.
    #[must_use]
    pub fn state_bytes(&self) -> usize {
        self.states.as_deref().map_or(0, size_of_val)
    }

    /// The cells and totals of a processor; none where there is no such processor or no memory.
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

    /// Whether the registers of `processor` must not be touched, since it [sleeps](Self::save). PROFILE_LEVEL there.
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

    /// HalQueryProfileSourceList: every source of the interface, in ascending order.
    pub fn source_list(&self) -> impl Iterator<Item = SourceInformation> {
        (0_u16..).zip(self.interface.sources()).map(|(index, source)| self.information(index, *source))
    }

    /// HalProfileSourceInformation. Of a raw event as well, whether or not it is in use.
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

    /// On some processor at least; if on none, what the boot processor says.
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

    /// Whether a source can be started, on some processor at least.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`].
    pub fn startable(&self, source: Source) -> Result<(), HalError> {
        match self.source_information(source)?.support {
            Support::Supported => Ok(()),
            support => Err(HalError::Unsupported(source, support)),
        }
    }

    /// Raw events of which `is_used` says no have no place any more. It is asked of the
    /// [index](CounterState::event) of each; no counter may count one that is not used. Any IRQL; who plans.
    pub fn keep_raw(&self, is_used: impl Fn(u16) -> bool) {
        for (index, place) in self.raw_places() {
            if !is_used(index) {
                place.store(0, Ordering::Relaxed);
            }
        }
    }

    /// The places of raw events, each with the index that a counter's state has of it.
    fn raw_places(&self) -> impl Iterator<Item = (u16, &AtomicU32)> {
        let first = u16::try_from(self.interface.sources().len()).unwrap_or(u16::MAX);
        (first..).zip(&self.raw)
    }

    /// The index of a source: of its row, or of the place of a raw event, which has one from now on.
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

    /// The counters of `processor` that can count what `state` says.
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

    /// Whether what `state` says can be counted on `processor`.
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

    /// HalProfileSourceInterval: the interval from the next start on, clamped to the source's range. Answers
    /// the one before and the one in force.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`], [`HalError::NoInterval`] of a raw event.
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

    /// How a source has to be set up: in modes, and with an interrupt after every interval in force, or without.
    /// The owner is left to the caller. A raw event has a place from now on, until [`keep_raw`](Self::keep_raw). Who plans.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`], [`HalError::Unsupported`], [`HalError::NoCounter`] for ProfileTime,
    /// [`HalError::NoInterrupt`] where counters do not interrupt, [`HalError::TooManyRaw`].
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

    /// Gives a free counter of `processor` to what `state` says (its owner must not be zero); `None` where
    /// all are taken. Nothing counts before [`start`](Self::start).
    pub fn reserve(&self, processor: ProcessorIndex, state: CounterState) -> Option<u8> {
        let mut assigned = [0];
        self.reserve_all(processor, &[state], &mut assigned).ok()?;
        let [counter] = assigned;
        Some(counter)
    }

    /// The same for several at once, whose choices may stand in each other's way: all get a counter, written to the same
    /// place of `assigned`, or none.
    ///
    /// # Errors
    /// The place of an event that finds no counter.
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

    /// The interval of a counter of `processor`, from its next load on. PROFILE_LEVEL there, or while it does not run.
    pub fn set_counter_interval(&self, processor: ProcessorIndex, counter: u8, interval: u32) {
        let row = self.row(processor);
        row.set(counter, row.get(counter).with_interval(interval));
    }

    /// Another has a counter of `processor` from now on. PROFILE_LEVEL there.
    pub fn hand_over(&self, current: CurrentCpu<'_, impl Cpu>, counter: u8, owner: u16) {
        let row = self.row(current.index());
        row.set(counter, row.get(counter).owned_by(owner));
    }

    /// Takes `counters` of `processor` back; they must have been stopped.
    pub fn free(&self, processor: ProcessorIndex, counters: CounterSet) {
        for counter in counters.iter() {
            self.row(processor).set(counter, CounterState::FREE);
        }
    }

    /// A counter of the current processor, that somebody else has enabled. A read for each
    /// counter up to that; nothing is read where the processor is held, or asleep. PROFILE_LEVEL.
    pub fn in_use_elsewhere(&self, current: CurrentCpu<'_, impl Cpu>) -> Option<Enabled> {
        let held = self.held.get(current.index().as_usize())?;
        let is_open = !held.by_us.load(Ordering::Relaxed) && !held.is_asleep();
        is_open.then(|| self.interface_of(current.index()).enabled(current.cpu())).flatten()
    }

    /// InitializeProfiling on the current processor. Answers whether its counters work; if
    /// not, nothing may be started there. On one that is asleep [`restore`](Self::restore) does it. PROFILE_LEVEL.
    pub fn initialize(&self, current: CurrentCpu<'_, impl Cpu>) -> bool {
        let Some(held) = self.held.get(current.index().as_usize()) else { return false };
        let is_first = !held.by_us.swap(true, Ordering::Relaxed);
        if held.is_asleep() {
            return true;
        }
        let interface = self.interface_of(current.index()).examined(current.cpu());
        held.known.set_capabilities(interface.capabilities());
        let saved = interface.initialize(current.cpu());
        if is_first {
            held.known.set_saved(saved);
        }
        held.set_stale(CounterSet::NONE);
        interface.readback_ok(current.cpu())
    }

    /// Whether the current registers of `processor` are ours: from [`initialize`](Self::initialize) to
    /// [`release`](Self::release). Any IRQL.
    #[must_use]
    pub fn holds(&self, processor: ProcessorIndex) -> bool {
        self.held.get(processor.as_usize()).is_some_and(|held| held.by_us.load(Ordering::Relaxed))
    }

    /// Leaves the current processor, as [`initialize`](Self::initialize) found it, but
    /// with clear select registers. Nothing happens where it is not held. PROFILE_LEVEL.
    pub fn release(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(held) = self.held.get(current.index().as_usize())
            && held.by_us.swap(false, Ordering::Relaxed)
            && !held.is_asleep()
        {
            self.interface_of(current.index()).release(current.cpu(), held.known.saved());
        }
    }

    /// HalStartProfileInterrupt on the current processor, for counters that were
    /// [reserved](Self::reserve) there. PROFILE_LEVEL.
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

    /// HalStopProfileInterrupt on the current processor. What the counters hold is added to
    /// their totals, which stay for [`total`](Self::total). Answers those that had overflowed with nobody serving it
    /// yet: their interrupt comes late, or not at all. PROFILE_LEVEL.
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

    /// Serves a performance monitor interrupt of the current processor: CheckOverflowStatus,
    /// then every counter that overflowed is loaded again and told. While no handler is registered, or the processor is
    /// [asleep](Self::is_asleep), nothing is touched. PROFILE_LEVEL; nothing allocates, locks or waits.
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

    /// Clears what a status register of the current processor, says of our counters, if the registers
    /// are ours and can be touched. PROFILE_LEVEL.
    #[cold]
    pub fn acknowledge(&self, current: CurrentCpu<'_, impl Cpu>) {
        if self.holds(current.index()) && !self.is_asleep(current.index()) {
            self.interface_of(current.index()).acknowledge(current.cpu());
        }
    }

    /// From now on nothing interrupts on the current processor: `counters`, which were stopped, lose
    /// their interrupt bits, the status is clear, and the entry of the local vector table is masked. The next
    /// [`start`](Self::start) sets a counter up again; the entry stays as it is. A processor that sleeps is left alone.
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

    /// Runs `work` while all counters of the current processor, stand still, as far as one register
    /// stops them all. On one that is asleep they do. PROFILE_LEVEL.
    pub fn with_frozen<R>(&self, current: CurrentCpu<'_, impl Cpu>, work: impl FnOnce() -> R) -> R {
        if self.is_asleep(current.index()) {
            return work();
        }
        self.interface_of(current.index()).freeze(current.cpu(), self.row(current.index()));
        let result = work();
        self.interface_of(current.index()).unfreeze(current.cpu(), self.row(current.index()));
        result
    }

    /// A precise counter of the current processor, overflowed, was recorded, and was loaded again by
    /// the processor itself, with `initial`. Answers the interval that this is. While the counters
    /// [stand](Self::with_frozen), or do not run. PROFILE_LEVEL.
    pub fn recorded(&self, current: CurrentCpu<'_, impl Cpu>, counter: u8, initial: u64) -> u32 {
        let missing_bits = 64_u8.saturating_sub(self.interface_of(current.index()).width_of(counter));
        if let Some(total) = self.row(current.index()).total(counter) {
            total.overflowed(0, initial, missing_bits);
        }
        (initial.wrapping_neg() & 0xFFFF_FFFF) as u32
    }

    /// What a counter of `processor` is loaded with at its start and after each overflow.
    #[must_use]
    pub fn initial_count(&self, processor: ProcessorIndex, counter: u8) -> u64 {
        self.row(processor).get(counter).initial_count(self.interface_of(processor).width_of(counter))
    }

    /// CheckOverflowStatus alone: which active counters with an interval have overflowed; on a processor that is asleep none
    /// has. PROFILE_LEVEL.
    pub fn check_overflow(&self, current: CurrentCpu<'_, impl Cpu>) -> OverflowStatus {
        if self.is_asleep(current.index()) {
            return OverflowStatus(CounterSet::NONE);
        }
        OverflowStatus(
            self.interface_of(current.index()).check_overflow(current.cpu(), self.row(current.index()).active),
        )
    }

    /// Before the current processor, loses its registers: what runs there is stopped, its counts
    /// are kept, and the registers are left as [`release`](Self::release) leaves them. Until
    /// [`restore`](Self::restore) none is touched: what is started or stopped meanwhile is so in the state alone.
    /// Answers as [`stop`](Self::stop). Again changes nothing. PROFILE_LEVEL.
    pub fn save(&self, current: CurrentCpu<'_, impl Cpu>) -> OverflowStatus {
        let Some(held) = self.held.get(current.index().as_usize()).filter(|held| !held.is_asleep()) else {
            return OverflowStatus(CounterSet::NONE);
        };
        let active = self.row(current.index()).active.all;
        let overflowed = self.stop(current, active);
        if self.holds(current.index()) {
            self.interface_of(current.index()).release(current.cpu(), held.known.saved());
        }
        held.asleep.store(true, Ordering::Relaxed);
        self.set_active(current.index(), active, true);
        overflowed
    }

    /// After the registers were lost, or not: what should run goes on, from the state alone. Without
    /// [`save`](Self::save) before it nothing happens. PROFILE_LEVEL.
    pub fn restore(&self, current: CurrentCpu<'_, impl Cpu>) {
        if let Some(held) = self.held.get(current.index().as_usize())
            && held.asleep.swap(false, Ordering::Relaxed)
            && self.holds(current.index())
        {
            let active = self.row(current.index()).counters(|state| state.active());
            self.set_active(current.index(), active, false);
            held.known.set_saved(self.interface_of(current.index()).initialize(current.cpu()));
            held.set_stale(CounterSet::NONE);
            self.start(current, active);
        }
    }

    /// What a counter of the current processor, has counted since its start; with one RDPMC if
    /// it runs. A counter that wraps is followed as long as it is asked at least once in between. PROFILE_LEVEL.
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

    /// What a stopped counter had counted since its start. Any IRQL.
    #[must_use]
    pub fn total(&self, processor: ProcessorIndex, counter: u8) -> u64 {
        self.row(processor).total(counter).map_or(0, Total::counted)
    }

    /// What a counter in this state counts.
    #[must_use]
    pub fn source(&self, state: CounterState) -> Source {
        self.profile_source(state).map_or(Source::TIME, |source| source.source)
    }

    fn interval(&self, event: u16) -> u32 {
        let usual = IntervalRange::COUNTER.default;
        self.intervals.get(usize::from(event)).map_or(usual, |cell| cell.load(Ordering::Relaxed))
    }
}

/// A slice made without a panic where memory is short.
fn filled<T>(length: usize, make: impl FnMut(usize) -> T) -> Result<Box<[T]>, HalError> {
    let mut items = Vec::new();
    items.try_reserve_exact(length).map_err(|_| HalError::NoMemory)?;
    items.extend((0..length).map(make));
    Ok(items.into_boxed_slice())
}
