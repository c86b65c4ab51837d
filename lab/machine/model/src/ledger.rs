//! The exact record of the events that reached the counters.

use crate::{counter::CounterId, select::Selected};
use std::collections::BTreeMap;

/// Exact totals of the events that reached the counters, independent of register values, counter widths and writes.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: BTreeMap<(CounterId, Selected, u64, bool, bool), LedgerEntry>,
}

/// Totals of one counter in one configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The counter.
    pub counter: CounterId,
    /// The selected event.
    pub selected: Selected,
    /// Value of the extra register of the event; 0 if it needs none.
    pub extra: u64,
    /// Whether the counter counted in user mode.
    pub user: bool,
    /// Whether the counter counted in kernel mode.
    pub kernel: bool,
    /// Events that occurred while the counter was enabled and the mode matched.
    pub counted: u64,
    /// Those of `counted` that occurred [between two accesses](crate::Processor::run_between_accesses).
    pub between: u64,
    /// Number of overflows.
    pub overflows: u64,
    /// Number of interrupts that the counter raised. Overflows within one [`run`](crate::Processor::run) raise at most
    /// one interrupt. Overflows of any counter while an interrupt is pending merge into it, and it stays attributed to
    /// the counter that raised it. The sum over all entries is the number of interrupts taken plus the pending one,
    /// without those that branch records, unmasking or register writes raised.
    pub interrupts: u64,
}

impl Ledger {
    /// Returns the entries: general counters first, then by number. Counters that received no event have no entry.
    pub fn entries(&self) -> impl Iterator<Item = LedgerEntry> + '_ {
        self.entries.values().copied()
    }

    /// Adds the totals of `entry` to those of the same counter in the same configuration.
    pub(crate) fn add(&mut self, entry: LedgerEntry) {
        let key = (entry.counter, entry.selected, entry.extra, entry.user, entry.kernel);
        let zero = LedgerEntry { counted: 0, between: 0, overflows: 0, interrupts: 0, ..entry };
        let total = self.entries.entry(key).or_insert(zero);
        total.counted = total.counted.saturating_add(entry.counted);
        total.between = total.between.saturating_add(entry.between);
        total.overflows = total.overflows.saturating_add(entry.overflows);
        total.interrupts = total.interrupts.saturating_add(entry.interrupts);
    }
}
