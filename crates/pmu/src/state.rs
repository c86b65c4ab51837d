//! State of the counters: 8 bytes per counter per processor, for the maximum number of processors, in one allocation
//! (HAL Amd64 interface and HAL Emon interface, section 5).
//!
//! The states of a processor are written by the thread that holds the engine's lock, or by the processor itself at
//! PROFILE_LEVEL. Each state is one atomic word, so readers always see a consistent state.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};

use bitfield_struct::bitfield;

mod extra;
pub(crate) mod raw;
mod snapshot;
mod started;
mod total;
mod tried;

pub(crate) use extra::ExtraState;
pub use raw::RawSlot;
pub use snapshot::{FoundMsrs, PmuSnapshot, SavedMsrs};
pub use started::{Beyond, CounterRegisters, StartedCounter};
pub use total::Total;
pub(crate) use total::backwards;
pub use tried::Tried;
pub(crate) use tried::TriedCells;

use crate::core_type::CoreType;
pub use crate::counter_set::{CounterSet, mask};
use crate::disturbance::Disturbances;
use crate::first_access::FirstAccesses;
use crate::source::{ProfileSource, Sources};
use crate::try_vec::try_vec;

/// State of a counter. All zero: free.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct CounterState {
    /// Events between two interrupts. Zero if the counter starts from zero and does not interrupt.
    pub interval: u32,
    /// Index of the event in the interface's table; higher indexes select raw events.
    #[bits(10)]
    pub event: u16,
    /// Tag of the owner, chosen by the caller; zero if the counter is free.
    #[bits(12)]
    pub owner: u16,
    /// Count in user mode.
    pub user: bool,
    /// Count in kernel mode.
    pub kernel: bool,
    /// Whether it counts now.
    pub active: bool,
    /// With an interval: the count must miss no event. The counter stands still while it is loaded again.
    pub counted: bool,
    /// With an interval: the processor records the overflow itself (PEBS) and reloads the counter.
    pub precise: bool,
    /// Amd64: the following counter is merged into this one, for an event with large increments.
    pub merged: bool,
    /// Amd64: this counter is merged into the one before it, and counts nothing by itself.
    pub upper: bool,
    /// Emon: the event is counted with the other response register than the one of its encoding.
    pub alternate: bool,
    /// Emon: the overflow of the other such counter of its owner loads it again (auto counter reload), so that its
    /// count is of the windows that ended with its own overflow.
    pub reloaded: bool,
    /// Emon: with [`reloaded`](Self::reloaded), so does its own overflow, which neither interrupts nor has a status.
    pub silent: bool,
}

const _: () = assert!(size_of::<CounterState>() == 8);

impl CounterState {
    /// State of a free counter.
    pub const FREE: Self = Self::new();

    /// Returns the state with another event, masked to the width of the field: no table of sources is longer.
    #[must_use]
    pub const fn of(self, event: u16) -> Self {
        self.with_event(event & ((1 << Self::EVENT_BITS) - 1))
    }

    /// Returns the state with another owner, masked to the width of the field. The allocator of tags ensures that it
    /// fits; a check here would be a panic at PROFILE_LEVEL.
    #[must_use]
    pub const fn owned_by(self, owner: u16) -> Self {
        self.with_owner(owner & ((1 << Self::OWNER_BITS) - 1))
    }

    /// Returns the state of a counter that is reserved for an owner, and counts nothing.
    #[must_use]
    pub const fn held_by(owner: u16) -> Self {
        Self::FREE.owned_by(owner)
    }

    /// Returns the state of a counter that no other one reloads. One that was silent has no interval.
    #[must_use]
    pub const fn alone(self) -> Self {
        let interval = if self.silent() { 0 } else { self.interval() };
        self.with_reloaded(false).with_silent(false).with_interval(interval)
    }

    /// Returns whether the counter is free.
    #[must_use]
    pub const fn is_free(self) -> bool {
        self.owner() == 0
    }

    /// Returns whether the counter is sampled: it has an interval, and is not silent.
    #[must_use]
    pub const fn interrupt(self) -> bool {
        self.interval() != 0 && !self.silent()
    }

    /// Returns whether the counter counts now and is sampled.
    #[must_use]
    pub const fn is_sampling(self) -> bool {
        self.active() && self.interrupt()
    }

    /// Returns whether its overflow interrupts. That of a precise counter does not, but its PEBS record may.
    #[must_use]
    pub const fn interrupts(self) -> bool {
        self.interrupt() && !self.precise()
    }

    /// Returns the value that the counter is loaded with at its start and after each overflow: the two's complement of
    /// the interval in `width` bits, so that the last event of the interval overflows it (HAL PMU design, section
    /// 3.2.4).
    #[must_use]
    pub const fn initial_count(self, width: u8) -> u64 {
        self.initial_within(mask(width))
    }

    /// Returns the same value for a counter with these bits.
    #[must_use]
    pub const fn initial_within(self, mask: u64) -> u64 {
        (self.interval() as u64).wrapping_neg() & mask
    }
}

/// Returns the counter that is merged into this one, which is [merged](CounterState::merged).
#[must_use]
pub const fn upper_of(counter: u8) -> u8 {
    counter.wrapping_add(1)
}

/// Returns the top bit of a counter with these bits. It is set from a load with an interval to the overflow.
#[must_use]
pub const fn top_bit(mask: u64) -> u64 {
    mask & !(mask >> 1)
}

/// Returns the mask of a counter with 64 minus `missing_bits` bits.
#[must_use]
pub const fn all_but(missing_bits: u8) -> u64 {
    u64::MAX >> (missing_bits % 64)
}

/// The state of one counter of one processor, in an atomic word.
#[derive(Debug, Default)]
pub struct CounterCell(AtomicU64);

const _: () = assert!(size_of::<CounterCell>() == 8);

impl CounterCell {
    /// Returns the state.
    #[must_use]
    pub fn load(&self) -> CounterState {
        CounterState::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Sets the state.
    pub fn store(&self, state: CounterState) {
        self.0.store(state.into_bits(), Ordering::Relaxed);
    }
}

/// Allocates `counters` default values for each of `processors`, or returns `None` if memory is low.
#[must_use]
pub fn allocate<T: Default>(processors: u32, counters: u8) -> Option<Vec<T>> {
    let cells = (processors as usize).checked_mul(usize::from(counters))?;
    try_vec(cells, |_| T::default())
}

/// The active counters of one processor: a copy of information from the states, so that an interrupt need not read them
/// all.
#[derive(Debug, Default)]
pub struct ActiveCell(AtomicU64);

impl ActiveCell {
    const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Returns the active counters.
    #[must_use]
    pub fn load(&self) -> Active {
        let bits = self.0.load(Ordering::Relaxed);
        Active { all: CounterSet::from_bits(bits), interrupting: CounterSet::from_bits(bits >> 32) }
    }

    /// Marks all counters as inactive, whatever the states contain.
    ///
    /// # IRQL
    /// PROFILE_LEVEL on the processor.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Updates the value from the states.
    ///
    /// # IRQL
    /// PROFILE_LEVEL on the processor.
    pub fn update(&self, cells: &[CounterCell]) {
        let (mut all, mut interrupting) = (CounterSet::NONE, CounterSet::NONE);
        for (counter, state) in (0..).zip(cells.iter().map(CounterCell::load)).filter(|(_, state)| state.active()) {
            all = all.with(counter);
            if state.interrupts() {
                interrupting = interrupting.with(counter);
            }
        }
        self.0.store(u64::from(all.bits()) | u64::from(interrupting.bits()) << 32, Ordering::Relaxed);
    }
}

/// The active counters of one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Active {
    /// All active counters.
    pub all: CounterSet,
    /// The active counters with an interval.
    pub interrupting: CounterSet,
}

/// PMU state of one processor. Only the processor writes it, at PROFILE_LEVEL, except for the total of a counter that
/// is being reserved and the capabilities, which the thread with the engine's lock writes.
#[derive(Debug)]
pub struct PerCpuPmu {
    /// By counter index.
    started: [StartedCounter; CounterSet::MOST as usize],
    active: ActiveCell,
    /// Known values of registers, and the capabilities.
    pub snapshot: PmuSnapshot,
    /// Counters, as a set, that may have overflowed without being served: a status register may still report them.
    stale: AtomicU32,
    initialized: AtomicBool,
    asleep: AtomicBool,
    /// Whether the counts may include System Management Mode although the driver excluded it.
    smm: AtomicBool,
    /// Number of the core type, or 0.
    core_type: AtomicU8,
    /// What was found disturbed.
    pub(crate) disturbances: Disturbances,
    /// One more than the ID of the core, or 0.
    pub(crate) core: AtomicU64,
    /// Results of the first accesses.
    pub(crate) first_accesses: FirstAccesses,
    /// Extra registers.
    pub(crate) extra: ExtraState,
    /// Whether the counters count.
    pub(crate) tried: TriedCells,
    /// Counters, as a set, that can reload each other.
    reloadable: AtomicU32,
}

/// State of a processor that does not exist, for a default `CpuCounters`.
static NO_CPU: PerCpuPmu = PerCpuPmu::new();

impl Default for &PerCpuPmu {
    fn default() -> Self {
        &NO_CPU
    }
}

impl PerCpuPmu {
    /// Creates the state of a processor without [`Interface::capabilities`](crate::Interface::capabilities).
    pub(crate) const fn new() -> Self {
        Self {
            started: [const { StartedCounter::new() }; CounterSet::MOST as usize],
            active: ActiveCell::new(),
            snapshot: PmuSnapshot::new(),
            stale: AtomicU32::new(0),
            initialized: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            smm: AtomicBool::new(false),
            core_type: AtomicU8::new(0),
            disturbances: Disturbances::new(),
            core: AtomicU64::new(0),
            first_accesses: FirstAccesses::new(),
            extra: ExtraState::new(),
            tried: TriedCells::new(),
            reloadable: AtomicU32::new(0),
        }
    }

    /// Returns the counters that can reload each other.
    pub(crate) fn reloadable(&self) -> CounterSet {
        CounterSet::from_bits(self.reloadable.load(Ordering::Relaxed).into())
    }

    /// Sets those counters.
    pub(crate) fn set_reloadable(&self, counters: CounterSet) {
        self.reloadable.store(counters.bits(), Ordering::Relaxed);
    }

    /// Returns the select register with which a counter was started.
    pub(crate) fn select(&self, counter: u8) -> u64 {
        self.started(counter).map_or(0, StartedCounter::select)
    }

    /// Returns a counter as it was started.
    #[inline]
    pub(crate) fn started(&self, counter: u8) -> Option<&StartedCounter> {
        self.started.get(usize::from(counter))
    }

    /// Returns these counters as they were started.
    #[inline]
    pub(crate) fn started_of(&self, counters: CounterSet) -> impl Iterator<Item = (u8, &StartedCounter)> {
        counters.iter().filter_map(|counter| Some((counter, self.started(counter)?)))
    }

    /// Returns the active counters.
    pub(crate) fn active(&self) -> Active {
        self.active.load()
    }

    /// Returns whether the driver has initialized the registers of the processor, and has not released them.
    pub(crate) fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Relaxed)
    }

    /// Sets that value; returns the previous one.
    pub(crate) fn set_initialized(&self, initialized: bool) -> bool {
        self.initialized.swap(initialized, Ordering::Relaxed)
    }

    /// Returns whether the registers are about to be lost and must not be touched.
    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Sets that value; returns the previous one.
    pub(crate) fn set_asleep(&self, asleep: bool) -> bool {
        self.asleep.swap(asleep, Ordering::Relaxed)
    }

    /// Notes that the counters do not stand still in System Management Mode any more.
    pub(crate) fn note_smm(&self) {
        self.smm.store(true, Ordering::Relaxed);
    }

    /// Forgets that, because the driver writes the register again.
    pub(crate) fn clear_smm(&self) {
        self.smm.store(false, Ordering::Relaxed);
    }

    /// Returns whether that was noted.
    pub(crate) fn has_smm(&self) -> bool {
        self.smm.load(Ordering::Relaxed)
    }

    /// Returns the core type that CPUID reports.
    pub(crate) fn core_type(&self) -> Option<CoreType> {
        CoreType::from_number(self.core_type.load(Ordering::Relaxed).into())
    }

    /// Sets that value.
    pub(crate) fn set_core_type(&self, core_type: Option<CoreType>) {
        self.core_type.store(core_type.map_or(0, |core_type| core_type as u8), Ordering::Relaxed);
    }

    /// Returns the counters that may have overflowed without being served.
    pub(crate) fn stale(&self) -> CounterSet {
        CounterSet::from_bits(self.stale.load(Ordering::Relaxed).into())
    }

    /// Sets those counters.
    pub(crate) fn set_stale(&self, counters: CounterSet) {
        self.stale.store(counters.bits(), Ordering::Relaxed);
    }
}

/// The states of the counters of one processor, with its PMU state.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuCounters<'a> {
    /// States by counter index.
    pub cells: &'a [CounterCell],
    /// The active counters, as they were when this value was made.
    pub active: Active,
    /// PMU state of the processor.
    pub pmu: &'a PerCpuPmu,
    /// The raw events in use on any processor.
    pub raw: &'a [RawSlot],
}

impl<'a> CpuCounters<'a> {
    /// Returns the state of a counter; a counter that does not exist is free.
    #[must_use]
    pub fn get(self, counter: u8) -> CounterState {
        self.cells.get(usize::from(counter)).map_or(CounterState::FREE, CounterCell::load)
    }

    /// Returns the source of a counter in this state: an entry of the interface's table, or one created for a raw
    /// event.
    #[must_use]
    pub fn source_of(self, table: Sources, state: CounterState) -> Option<ProfileSource> {
        raw::source_of(table, self.raw, state)
    }

    /// Returns the event select register of the [source](Self::source_of), or 0 if there is none.
    #[must_use]
    pub fn select_of(self, table: Sources, state: CounterState) -> u64 {
        raw::select_of(table, self.raw, state)
    }

    /// Returns the counter into which this one is merged; or this one, if it counts by itself.
    pub(crate) fn whole_of(self, counter: u8) -> u8 {
        counter.wrapping_sub(u8::from(self.get(counter).upper()))
    }

    /// Returns the [upper](CounterState::upper) counters that belong to these counters.
    #[must_use]
    pub fn uppers(self, counters: CounterSet) -> CounterSet {
        counters.iter().filter(|counter| self.get(*counter).merged()).map(upper_of).collect()
    }

    /// Returns the total of a counter.
    #[must_use]
    pub fn total(self, counter: u8) -> Option<&'a Total> {
        Some(&self.pmu.started(counter)?.total)
    }

    /// Sets the state of a counter; does nothing if the counter does not exist.
    pub fn set(self, counter: u8, state: CounterState) {
        if let Some(cell) = self.cells.get(usize::from(counter)) {
            cell.store(state);
        }
    }

    /// Marks these counters as active or inactive.
    ///
    /// # IRQL
    /// PROFILE_LEVEL on the processor.
    pub(crate) fn set_active(self, counters: CounterSet, active: bool) {
        for counter in counters.iter() {
            self.set(counter, self.get(counter).with_active(active));
        }
        if self.pmu.is_asleep() {
            self.pmu.active.clear();
        } else {
            self.pmu.active.update(self.cells);
        }
    }

    /// Returns the counters with a state for which `wanted` returns true.
    pub fn counters(self, wanted: impl Fn(CounterState) -> bool) -> CounterSet {
        (0_u8..).zip(self.cells).filter(|(_, cell)| wanted(cell.load())).map(|(counter, _)| counter).collect()
    }
}
