//! Budget of the time in the handler: what a processor has spent since its last tick.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use pmu::state::CounterSet;

use crate::time::Ticks;

/// State of one processor, which only that processor accesses.
#[derive(Debug, Default)]
pub struct Throttle {
    /// Time spent since the last tick.
    spent: AtomicU64,
    /// Counters that are stopped until the next tick. Bit n is counter n.
    waiting: AtomicU32,
    /// The recording of branches is stopped until the next tick.
    traced: AtomicBool,
    /// Time at which they were stopped.
    since: AtomicU64,
    times: AtomicU64,
}

impl Throttle {
    /// Adds time in the handler. Returns whether the sum since the last tick exceeds the budget.
    pub fn spend(&self, time: Ticks, budget: Ticks) -> bool {
        let spent = self.spent.load(Ordering::Relaxed).saturating_add(time.0);
        self.spent.store(spent, Ordering::Relaxed);
        spent > budget.0
    }

    /// Notes counters that were stopped until the next tick, and the recording of branches if it was `traced`.
    pub fn begin(&self, counters: CounterSet, traced: bool, now: Ticks) {
        self.traced.fetch_or(traced, Ordering::Relaxed);
        let waiting = self.waiting().or(counters);
        self.waiting.store(waiting.bits(), Ordering::Relaxed);
        self.since.store(now.0, Ordering::Relaxed);
        self.times.store(self.times().wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns whether a counter or the branches are stopped until the next tick.
    pub fn is_waiting(&self) -> bool {
        self.traced.load(Ordering::Relaxed) || !self.waiting().is_empty()
    }

    /// Removes counters that have no subscriber any more.
    pub fn forget(&self, counters: CounterSet) {
        self.waiting.store(self.waiting().without(counters).bits(), Ordering::Relaxed);
    }

    /// Removes the branches.
    pub fn forget_branches(&self) {
        self.traced.store(false, Ordering::Relaxed);
    }

    /// Begins a new window, at a tick. Returns the counters that were stopped, whether the branches were, and since
    /// when.
    pub fn next_window(&self) -> Option<(CounterSet, bool, Ticks)> {
        self.spent.store(0, Ordering::Relaxed);
        let waiting = self.waiting();
        self.waiting.store(0, Ordering::Relaxed);
        let traced = self.traced.load(Ordering::Relaxed);
        self.forget_branches();
        (traced || !waiting.is_empty()).then(|| (waiting, traced, Ticks(self.since.load(Ordering::Relaxed))))
    }

    /// Returns how often the budget was exceeded.
    pub fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    fn waiting(&self) -> CounterSet {
        CounterSet::from_bits(self.waiting.load(Ordering::Relaxed).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_for_all_interrupts_between_two_ticks_together() {
        let throttle = Throttle::default();
        let spend = |time| throttle.spend(Ticks(time), Ticks(100));
        assert_eq!([spend(60), spend(40), spend(1)], [false, false, true]);
        assert_eq!(throttle.next_window(), None);
        assert_eq!([spend(100), spend(u64::MAX)], [false, true]);
    }

    #[test]
    fn stopped_counters_are_resumed_once_unless_they_are_removed() {
        let throttle = Throttle::default();
        let two = CounterSet::NONE.with(1).with(3);
        throttle.begin(two, false, Ticks(7));
        throttle.forget(CounterSet::NONE.with(3));
        assert_eq!(throttle.next_window(), Some((CounterSet::NONE.with(1), false, Ticks(7))));
        assert_eq!(throttle.next_window(), None);
        throttle.begin(two, false, Ticks(9));
        throttle.forget(two);
        assert_eq!((throttle.next_window(), throttle.times()), (None, 2));
        throttle.begin(CounterSet::NONE, true, Ticks(11));
        assert_eq!(throttle.next_window(), Some((CounterSet::NONE, true, Ticks(11))));
        throttle.begin(CounterSet::NONE, true, Ticks(12));
        throttle.forget_branches();
        assert_eq!(throttle.next_window(), None);
    }
}
