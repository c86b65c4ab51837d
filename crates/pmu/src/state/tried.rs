//! What the counters of a processor counted when they were last tried.

use core::sync::atomic::{AtomicU32, Ordering};

use super::CounterSet;

/// The counters of a processor that were tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tried {
    /// All of them.
    pub all: CounterSet,
    /// Those that count no event of the loop.
    pub still: CounterSet,
    /// Those that count only a part.
    pub partial: CounterSet,
}

impl Tried {
    /// Returns the counters that do not count everything.
    #[must_use]
    pub const fn unsteady(self) -> CounterSet {
        self.still.or(self.partial)
    }
}

/// Results of the last loop of each counter of a processor.
#[derive(Debug, Default)]
pub(crate) struct TriedCells {
    all: AtomicU32,
    still: AtomicU32,
    partial: AtomicU32,
    /// Counters that count, but not the event that they were reserved for.
    filtered: AtomicU32,
    /// Bit n: every general counter takes the event n of the loop, as a guarded write has shown.
    pub(crate) taken: AtomicU32,
}

impl TriedCells {
    pub(crate) const fn new() -> Self {
        let [all, still, partial, filtered, taken] = [const { AtomicU32::new(0) }; 5];
        Self { all, still, partial, filtered, taken }
    }

    pub(crate) fn load(&self) -> Tried {
        let of = |cell: &AtomicU32| CounterSet::from_bits(cell.load(Ordering::Relaxed).into());
        Tried { all: of(&self.all), still: of(&self.still), partial: of(&self.partial) }
    }

    pub(crate) fn filtered(&self) -> CounterSet {
        CounterSet::from_bits(self.filtered.load(Ordering::Relaxed).into())
    }

    /// Replaces the results of the counters in `tried.all`.
    pub(crate) fn store(&self, Tried { all, still, partial }: Tried, filtered: CounterSet) {
        self.all.fetch_or(all.bits(), Ordering::Relaxed);
        for (cell, found) in [(&self.still, still), (&self.partial, partial), (&self.filtered, filtered)] {
            let others = CounterSet::from_bits(cell.load(Ordering::Relaxed).into()).without(all);
            cell.store(others.or(found).bits(), Ordering::Relaxed);
        }
    }
}
