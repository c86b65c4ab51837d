//! The account of what the counters were given.

use crate::{counter::CounterId, select::Selected};
use std::collections::BTreeMap;

/// Exact account of what the counters were given: independent of the registers, of their width and of writes to them.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    entries: BTreeMap<(CounterId, Selected, bool, bool), LedgerEntry>,
}

/// What one counter was given while it was set in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The counter.
    pub counter: CounterId,
    /// What it was set to count.
    pub selected: Selected,
    /// It was set to count in user mode.
    pub user: bool,
    /// It was set to count in kernel mode.
    pub kernel: bool,
    /// Events while it was enabled and the mode matched.
    pub counted: u64,
    /// How many times it passed through zero while counting.
    pub overflows: u64,
    /// How many interrupts it raised. Overflows merge: those of one [`run`](crate::Processor::run) into one interrupt,
    /// and those of any counter while an interrupt is pending into the pending one, which stays with the counter that
    /// raised it. The sum over all entries is the interrupts taken plus the pending one; those of branches, which are of no
    /// counter, and those that unmasking raised again are not in it.
    pub interrupts: u64,
}

impl Ledger {
    /// The entries, general counters first, in the order of their numbers. A counter that was given nothing has none.
    pub fn entries(&self) -> impl Iterator<Item = LedgerEntry> + '_ {
        self.entries.values().copied()
    }

    /// Adds the counts of `entry` to those of the same counter, set in the same way.
    pub(crate) fn add(&mut self, entry: LedgerEntry) {
        let key = (entry.counter, entry.selected, entry.user, entry.kernel);
        let zero = LedgerEntry { counted: 0, overflows: 0, interrupts: 0, ..entry };
        let total = self.entries.entry(key).or_insert(zero);
        total.counted = total.counted.saturating_add(entry.counted);
        total.overflows = total.overflows.saturating_add(entry.overflows);
        total.interrupts = total.interrupts.saturating_add(entry.interrupts);
    }
}
