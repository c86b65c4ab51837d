//! State of the counters: 8 bytes per counter per processor, for the maximum number of processors, in one
//! allocation (seeds 000 and 002, "For the sake of completeness").
//!
//! A processor's row is written by who holds the engine's lock, or by that processor itself at
//! PROFILE_LEVEL; each cell is one atomic word, so a reader never sees half a state.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use bitfield_struct::bitfield;

use crate::source::{ProfileSource, Source};

/// What a counter is set to do. All zero: free.
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct CounterState {
    /// Events between two interrupts; means something only with `interrupt`.
    pub interval: u32,
    /// Index of the event in the interface's table; beyond that, of the raw events in use.
    #[bits(12)]
    pub event: u16,
    /// Who has it: a tag of the caller's, never zero.
    #[bits(12)]
    pub owner: u16,
    /// Count in user mode.
    pub user: bool,
    /// Count in kernel mode.
    pub kernel: bool,
    /// It counts now.
    pub active: bool,
    /// Interrupt after every `interval` events; else it counts from zero and nothing interrupts.
    pub interrupt: bool,
    /// With `interrupt`: the processor itself records the overflow (PEBS), and loads the counter again.
    pub precise: bool,
    #[bits(3)]
    __: u8,
}

const _: () = assert!(size_of::<CounterState>() == 8);

impl CounterState {
    /// Nobody has the counter.
    pub const FREE: Self = Self::new();

    /// The same, of another event. Indices have so many bits: the tables of sources are shorter.
    #[must_use]
    pub const fn of(self, event: u16) -> Self {
        self.with_event(event & ((1 << Self::EVENT_BITS) - 1))
    }

    /// The same, of another owner. Tags have so many bits, and who gives them out sees to that: to check it here would
    /// be a panic at PROFILE_LEVEL.
    #[must_use]
    pub const fn owned_by(self, owner: u16) -> Self {
        self.with_owner(owner & ((1 << Self::OWNER_BITS) - 1))
    }

    /// Whether nobody has the counter.
    #[must_use]
    pub const fn is_free(self) -> bool {
        self.owner() == 0
    }

    /// Whether it counts now and is sampled.
    #[must_use]
    pub const fn is_sampling(self) -> bool {
        self.active() && self.interrupt()
    }

    /// Whether its own overflow interrupts: that of a precise one does not, its record may.
    #[must_use]
    pub const fn interrupts(self) -> bool {
        self.interrupt() && !self.precise()
    }

    /// What the counter is loaded with at its start and after each overflow: the two's complement of the
    /// interval, within `width` bits, so that the interval's last event overflows it (seed 003, SetInterval).
    #[must_use]
    pub const fn initial_count(self, width: u8) -> u64 {
        self.initial_within(mask(width))
    }

    /// The same, with the bits of the counter.
    #[must_use]
    pub const fn initial_within(self, mask: u64) -> u64 {
        if self.interrupt() { self.armed_within(mask) } else { 0 }
    }

    /// The same, of a counter that is known to have an interval.
    #[must_use]
    pub const fn armed_within(self, mask: u64) -> u64 {
        (self.interval() as u64).wrapping_neg() & mask
    }
}

/// The top bit of a counter of these bits: set from a load with an interval to the overflow.
#[must_use]
pub const fn top_bit(mask: u64) -> u64 {
    mask & !(mask >> 1)
}

/// The bits of a counter that has so many fewer than 64.
#[must_use]
pub const fn all_but(missing_bits: u8) -> u64 {
    u64::MAX >> (missing_bits % 64)
}

/// The bits of a counter.
#[must_use]
pub const fn mask(width: u8) -> u64 {
    let missing_bits = 64_u32.saturating_sub(width as u32);
    match u64::MAX.checked_shr(missing_bits) {
        Some(mask) => mask,
        None => 0,
    }
}

/// The cell of one counter of one processor.
#[derive(Debug, Default)]
pub struct CounterCell(AtomicU64);

const _: () = assert!(size_of::<CounterCell>() == 8);

impl CounterCell {
    /// What it holds.
    #[must_use]
    pub fn load(&self) -> CounterState {
        CounterState::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Puts a state in.
    pub fn store(&self, state: CounterState) {
        self.0.store(state.into_bits(), Ordering::Relaxed);
    }
}

/// Cells for `counters` of each of `processors`, all zero; `None` when memory is short.
#[must_use]
pub fn allocate<T: Default>(processors: u32, counters: u8) -> Option<Box<[T]>> {
    let cells = (processors as usize).checked_mul(usize::from(counters))?;
    let mut states = Vec::new();
    states.try_reserve_exact(cells).ok()?;
    states.extend((0..cells).map(|_| T::default()));
    Some(states.into_boxed_slice())
}

/// What a counter has counted, beyond what its register has room for. Lives apart from the 8 bytes of its state.
#[derive(Debug, Default)]
pub struct Total {
    counted: AtomicU64,
    /// What the register held when `counted` was brought up to date.
    held: AtomicU64,
}

impl Total {
    /// Events up to the last update.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }

    /// Nothing has been counted.
    pub fn clear(&self) {
        self.counted.store(0, Ordering::Relaxed);
    }

    /// The register was loaded with this.
    pub fn loaded(&self, value: u64) {
        self.held.store(value, Ordering::Relaxed);
    }

    /// The same of a counter that the processor itself may have loaded again since. Where it has, what is missing comes
    /// when its record is [accounted](Self::overflowed).
    pub fn follow(&self, value: u64, missing_bits: u8) -> u64 {
        let events = sign_extended(value.wrapping_sub(self.held.swap(value, Ordering::Relaxed)), missing_bits);
        let counted = self.counted().wrapping_add(events);
        self.counted.store(counted, Ordering::Relaxed);
        counted
    }

    /// The register holds this; it has wrapped once at most since the last update.
    pub fn update(&self, value: u64, width: u8) -> u64 {
        let events = value.wrapping_sub(self.held.swap(value, Ordering::Relaxed)) & mask(width);
        let counted = self.counted().wrapping_add(events);
        self.counted.store(counted, Ordering::Relaxed);
        counted
    }

    /// The register had overflowed, held `value`, and is loaded with `initial`; it has `missing_bits` bits fewer than 64. Where the
    /// processor itself loaded it, `value` is 0, which takes back what was read after the overflow.
    pub fn overflowed(&self, value: u64, initial: u64, missing_bits: u8) {
        // The processor's own at PROFILE_LEVEL, as everything that writes here: no locked exchange is needed.
        let events = sign_extended(value.wrapping_sub(self.held.load(Ordering::Relaxed)), missing_bits);
        self.held.store(initial, Ordering::Relaxed);
        self.counted.store(self.counted().wrapping_add(events), Ordering::Relaxed);
    }
}

/// The difference of two values of a counter that are less than half its range apart.
const fn sign_extended(difference: u64, missing_bits: u8) -> u64 {
    let missing_bits = missing_bits % 64;
    ((difference << missing_bits).cast_signed() >> missing_bits).cast_unsigned()
}

/// Some counters of one processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterSet(u32);

impl CounterSet {
    /// None.
    pub const NONE: Self = Self(0);

    /// The most counters that a processor can have.
    pub const MOST: u8 = 32;

    /// With `counter` as well.
    #[must_use]
    pub const fn with(self, counter: u8) -> Self {
        Self(self.0 | 1 << (counter % Self::MOST))
    }

    /// Whether `counter` is one of them.
    #[must_use]
    pub const fn has(self, counter: u8) -> bool {
        self.0 & 1 << (counter % Self::MOST) != 0
    }

    /// Without those in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Bit n is counter n.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Counter n for bit n; bits beyond [`MOST`](Self::MOST) are no counters.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self((bits & 0xFFFF_FFFF) as u32)
    }

    /// The first `count`.
    #[must_use]
    pub const fn first(count: u8) -> Self {
        Self((mask(count) & 0xFFFF_FFFF) as u32)
    }

    /// Those in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those in either.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// In ascending order.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let after = left & left.checked_sub(1)?;
            let counter = (left.trailing_zeros() & 0xFF) as u8;
            left = after;
            Some(counter)
        })
    }
}

impl FromIterator<u8> for CounterSet {
    fn from_iter<T: IntoIterator<Item = u8>>(counters: T) -> Self {
        counters.into_iter().fold(Self::NONE, Self::with)
    }
}

/// The counters of one processor that count now: a shadow of the cells, so that an interrupt need not go through them.
#[derive(Debug, Default)]
pub struct ActiveCell(AtomicU64);

impl ActiveCell {
    /// Those that count.
    #[must_use]
    pub fn load(&self) -> Active {
        let bits = self.0.load(Ordering::Relaxed);
        Active { all: CounterSet::from_bits(bits), interrupting: CounterSet::from_bits(bits >> 32) }
    }

    /// None counts, whatever the cells say. PROFILE_LEVEL on the processor.
    pub fn clear(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Brings it up to date with the cells. PROFILE_LEVEL on the processor.
    pub fn update(&self, cells: &[CounterCell]) {
        let of = |wanted: fn(CounterState) -> bool| -> CounterSet {
            (0..).zip(cells).filter(|(_, cell)| wanted(cell.load())).map(|(counter, _)| counter).collect()
        };
        let (all, interrupting) = (of(|state| state.active()), of(|state| state.active() && state.interrupts()));
        self.0.store(u64::from(all.bits()) | u64::from(interrupting.bits()) << 32, Ordering::Relaxed);
    }
}

/// Counters of one processor that count now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Active {
    /// All of them.
    pub all: CounterSet,
    /// Those with an interval.
    pub interrupting: CounterSet,
}

/// What [`initialize`](crate::ProfileInterface::initialize) found in the control registers of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SavedMsrs {
    /// In the one over all counters.
    pub global: u64,
    /// In the one of the fixed counters.
    pub fixed: u64,
}

/// What is known of a processor, in memory that processors share.
#[derive(Debug, Default)]
pub struct PmuSnapshot {
    global: AtomicU64,
    fixed: AtomicU64,
    capabilities: AtomicU64,
    control: AtomicU64,
}

impl PmuSnapshot {
    /// A processor with this [`Interface::capabilities`](crate::Interface::capabilities).
    #[must_use]
    pub const fn new(capabilities: u64) -> Self {
        Self {
            global: AtomicU64::new(0),
            fixed: AtomicU64::new(0),
            capabilities: AtomicU64::new(capabilities),
            control: AtomicU64::new(0),
        }
    }

    /// What was in its control registers.
    #[must_use]
    pub fn saved(&self) -> SavedMsrs {
        SavedMsrs { global: self.global.load(Ordering::Relaxed), fixed: self.fixed.load(Ordering::Relaxed) }
    }

    /// What is in the one over all counters while some of ours count: nobody has to read it.
    #[must_use]
    pub fn control(&self) -> u64 {
        self.control.load(Ordering::Relaxed)
    }

    /// Puts it in.
    pub fn set_control(&self, control: u64) {
        self.control.store(control, Ordering::Relaxed);
    }

    /// Puts it in.
    pub fn set_saved(&self, saved: SavedMsrs) {
        self.global.store(saved.global, Ordering::Relaxed);
        self.fixed.store(saved.fixed, Ordering::Relaxed);
    }

    /// What counters it has: its [`Interface::capabilities`](crate::Interface::capabilities).
    #[must_use]
    pub fn capabilities(&self) -> u64 {
        self.capabilities.load(Ordering::Relaxed)
    }

    /// Puts it in.
    pub fn set_capabilities(&self, capabilities: u64) {
        self.capabilities.store(capabilities, Ordering::Relaxed);
    }
}

/// Of no processor.
static NOTHING: PmuSnapshot = PmuSnapshot::new(0);

impl Default for &PmuSnapshot {
    fn default() -> Self {
        &NOTHING
    }
}

/// The cells and totals of one processor.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuCounters<'a> {
    /// In the order of the counters.
    pub cells: &'a [CounterCell],
    /// In the same order.
    pub totals: &'a [Total],
    /// Those that count now.
    pub active: Active,
    /// What was there before, and what counters there are.
    pub known: &'a PmuSnapshot,
    /// The numbers of the raw events in use, on any processor.
    pub raw: &'a [AtomicU32],
}

impl<'a> CpuCounters<'a> {
    /// The state of a counter; a counter that does not exist is free.
    #[must_use]
    pub fn get(self, counter: u8) -> CounterState {
        self.cells.get(usize::from(counter)).map_or(CounterState::FREE, CounterCell::load)
    }

    /// What a counter in this state counts: a row of the interface's table, or one made for a raw event.
    #[must_use]
    pub fn source_of(self, table: &[ProfileSource], state: CounterState) -> Option<ProfileSource> {
        let index = usize::from(state.event());
        let Some(beyond) = index.checked_sub(table.len()) else { return table.get(index).copied() };
        let number = self.raw.get(beyond)?.load(Ordering::Relaxed);
        Source(number).raw().map(ProfileSource::of_raw)
    }

    /// What [`source_of`](Self::source_of) has for the event select register.
    #[must_use]
    pub fn select_of(self, table: &[ProfileSource], state: CounterState) -> u64 {
        self.source_of(table, state).map_or(0, |source| source.select)
    }

    /// The total of a counter.
    #[must_use]
    pub fn total(self, counter: u8) -> Option<&'a Total> {
        self.totals.get(usize::from(counter))
    }

    /// Puts a state in; nothing happens where there is no such counter.
    pub fn set(self, counter: u8, state: CounterState) {
        if let Some(cell) = self.cells.get(usize::from(counter)) {
            cell.store(state);
        }
    }

    /// The counters whose state is as `wanted` says.
    pub fn counters(self, wanted: impl Fn(CounterState) -> bool) -> CounterSet {
        (0_u8..).zip(self.cells).filter(|(_, cell)| wanted(cell.load())).map(|(counter, _)| counter).collect()
    }
}
