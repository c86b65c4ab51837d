//! Raw events in use: the state of a counter has the index of one.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::extra::{Extra, Selector};
use crate::source::{ProfileSource, RawEvent, Source, Sources};
use crate::state::{CounterState, CpuCounters};

/// A raw event in use, with the value of its extra register, or a free slot. Written by the thread with the planning
/// lock, and only while no counter has its index.
#[derive(Debug, Default)]
pub struct RawSlot {
    /// Bits of a [`RawEvent`], or 0 if the slot is free.
    event: AtomicU64,
    /// Its [select](RawEvent::select), which a start needs several times.
    select: AtomicU64,
    extra: AtomicU64,
}

impl RawSlot {
    /// Returns the event, or `None` if the slot is free.
    #[must_use]
    pub fn event(&self) -> Option<RawEvent> {
        Source(self.event.load(Ordering::Relaxed)).raw()
    }

    /// Returns the source of the event.
    fn source(&self) -> Option<ProfileSource> {
        let select = self.select.load(Ordering::Relaxed);
        self.event().map(|event| ProfileSource { source: event.source(), name: "", select })
    }

    /// Returns what the event needs in an extra register.
    #[must_use]
    pub fn extra(&self) -> Option<Extra> {
        let selector = Selector::from_number(self.event()?.selector())?;
        Some(Extra { selector, value: self.extra.load(Ordering::Relaxed) })
    }

    /// Takes the slot for a raw event.
    pub(crate) fn set(&self, event: &ProfileSource, value: u64) {
        self.extra.store(value, Ordering::Relaxed);
        self.select.store(event.select, Ordering::Relaxed);
        self.event.store(event.source.0, Ordering::Relaxed);
    }

    /// Frees the slot.
    pub(crate) fn free(&self) {
        self.event.store(0, Ordering::Relaxed);
        self.select.store(0, Ordering::Relaxed);
    }

    /// Returns whether the slot has this event with this value.
    pub(crate) fn is(&self, event: &ProfileSource, value: u64) -> bool {
        self.event.load(Ordering::Relaxed) == event.source.0 && self.extra.load(Ordering::Relaxed) == value
    }

    /// Returns whether the slot is free.
    pub(crate) fn is_free(&self) -> bool {
        self.event.load(Ordering::Relaxed) == 0
    }
}

/// Returns the source with the index in this state: an entry of the table of an interface, or one created for a raw
/// event.
// Never inlined: it would cost the deepest path of the handler more stack.
#[inline(never)]
pub(crate) fn source_of(table: Sources, raw: &[RawSlot], state: CounterState) -> Option<ProfileSource> {
    let index = usize::from(state.event());
    let Some(beyond) = index.checked_sub(table.len()) else { return table.get(index) };
    raw.get(beyond)?.source()
}

/// Returns the select of that source, or 0 if there is none.
// Never inlined: it would cost the deepest path of the handler more stack.
#[inline(never)]
pub(crate) fn select_of(table: Sources, raw: &[RawSlot], state: CounterState) -> u64 {
    let index = usize::from(state.event());
    match index.checked_sub(table.len()) {
        None => table.select(index),
        Some(beyond) => raw.get(beyond).map(|slot| slot.select.load(Ordering::Relaxed)),
    }
    .unwrap_or(0)
}

/// Returns what that event needs in an extra register.
pub(crate) fn extra_of(table: Sources, raw: &[RawSlot], state: CounterState) -> Option<Extra> {
    raw.get(usize::from(state.event()).checked_sub(table.len())?)?.extra()
}

impl CpuCounters<'_> {
    /// Returns what the event of a counter in this state needs in an extra register. `table` is that of the interface.
    #[must_use]
    pub fn extra_of(self, table: Sources, state: CounterState) -> Option<Extra> {
        extra_of(table, self.raw, state)
    }
}
