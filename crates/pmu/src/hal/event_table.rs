//! What the index of an event stands for: an entry of the interface's table, or a raw event in use; and the intervals.
//! Only the thread that holds the planning lock changes them.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::{HalError, MAX_RAW};
use crate::extra::Extra;
use crate::interval::IntervalRange;
use crate::source::{ProfileSource, Source, Sources};
use crate::state::{CounterState, RawSlot, raw};
use crate::try_vec::try_vec;

/// The events that the state of a counter can name.
#[derive(Debug)]
pub struct EventTable {
    /// Table of the interface.
    pub(super) sources: Sources,
    /// One interval for each entry.
    intervals: Vec<AtomicU32>,
    /// Raw events in use. Their indexes follow those of the entries.
    raw: Vec<RawSlot>,
    /// Number of the slots that were ever taken: the first ones.
    raw_taken: AtomicU16,
}

impl EventTable {
    /// Makes the table of an interface, or returns `None` if memory is low.
    pub(super) fn new(sources: Sources) -> Option<Self> {
        let intervals = try_vec(sources.len(), |index| {
            let range = sources.get(index).map_or(IntervalRange::COUNTER, |entry| IntervalRange::of(entry.source));
            AtomicU32::new(range.default)
        })?;
        let raw = try_vec(usize::from(MAX_RAW), |_| RawSlot::default())?;
        Some(Self { sources, intervals, raw, raw_taken: AtomicU16::new(0) })
    }

    /// Returns the slots of raw events, for the counters of a processor.
    #[inline]
    pub(super) fn raw(&self) -> &[RawSlot] {
        &self.raw
    }

    /// Returns the table entry of a source with its index, or an entry for a raw event, whether or not it is in use.
    ///
    /// # Errors
    /// [`HalError::UnknownSource`].
    pub(super) fn entry(&self, source: Source) -> Result<(u16, ProfileSource), HalError> {
        let raw = source.raw().map(|event| (u16::MAX, ProfileSource::of_raw(event)));
        raw.or_else(|| self.sources.find(source)).ok_or(HalError::UnknownSource(source))
    }

    /// Returns the event with this state's index.
    #[must_use]
    pub fn source_of(&self, state: CounterState) -> Option<ProfileSource> {
        raw::source_of(self.sources, &self.raw, state)
    }

    /// Returns what that event needs in an extra register.
    #[must_use]
    pub fn extra_of(&self, state: CounterState) -> Option<Extra> {
        raw::extra_of(self.sources, &self.raw, state)
    }

    /// Returns the interval in force of an event.
    pub(super) fn interval(&self, index: u16) -> u32 {
        let usual = IntervalRange::COUNTER.default;
        self.intervals.get(usize::from(index)).map_or(usual, |cell| cell.load(Ordering::Relaxed))
    }

    /// Sets that interval; returns the previous one.
    pub(super) fn set_interval(&self, index: u16, interval: u32) -> u32 {
        self.intervals.get(usize::from(index)).map_or(interval, |cell| cell.swap(interval, Ordering::Relaxed))
    }

    /// Frees the raw-event slots for which `is_used` returns false. Its argument is the [index](CounterState::event) of
    /// the slot. No counter may count an event that is freed. The caller holds the planning lock.
    ///
    /// # IRQL
    /// Any.
    pub fn keep_raw(&self, is_used: impl Fn(u16) -> bool) {
        let first = self.sources.first_raw();
        let taken = self.raw_taken.load(Ordering::Relaxed);
        for (index, slot) in (first..).zip(self.raw.iter().take(taken.into())) {
            if !slot.is_free() && !is_used(index) {
                slot.free();
            }
        }
    }

    /// Returns the index of a raw event with the value of its extra register, or 0: that of its slot, which is taken if
    /// the event has none yet.
    ///
    /// # Errors
    /// [`HalError::TooManyRaw`].
    pub(super) fn index_of_raw(&self, event: &ProfileSource, value: u64) -> Result<u16, HalError> {
        let taken = self.raw_taken.load(Ordering::Relaxed);
        let slots = self.raw.get(..usize::from(taken)).unwrap_or_default();
        let (mut number, mut free) = (0_u16, taken);
        for slot in slots {
            if slot.is(event, value) {
                return Ok(self.sources.first_raw().saturating_add(number));
            }
            if free == taken && slot.is_free() {
                free = number;
            }
            number = number.saturating_add(1);
        }
        let slot = self.raw.get(usize::from(free)).ok_or(HalError::TooManyRaw(event.source))?;
        slot.set(event, value);
        self.raw_taken.store(taken.max(free.saturating_add(1)), Ordering::Relaxed);
        Ok(self.sources.first_raw().saturating_add(free))
    }
}
