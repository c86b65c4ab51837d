//! Budget of the time in the handler: what a processor may spend until its next tick.
//!
//! The handler measures the time from its beginning to its end. What comes before and after, it cannot measure:
//! [`OVERHEAD`] stands for it.
//!
//! The budget is a share of measured time. Ticks come from a timer, which expires with the clock interrupt: 64 times
//! per second by default, and sometimes late. Therefore a tick grants the share of the time since the tick before,
//! instead of a constant amount. What is left at a tick stays, up to the share of [`MAX_WINDOW`], because ticks that
//! are late are often followed by one that comes early. The tick computes the share, so that an interrupt only
//! subtracts.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use pmu::state::CounterSet;

use crate::time::Ticks;

/// Maximum of the time whose share may be spent until the next tick, in ticks at their nominal rate. It limits the
/// handler's time in one piece, and covers ticks that are 50 ms apart.
pub const MAX_WINDOW: u64 = 5;

/// Nanoseconds that an interrupt takes before and after what the handler measures: the delivery through the
/// interrupt gate, the kernel's trap frame, the HAL's dispatch to the handler, the end of interrupt and IRET. Estimated
/// at 1 to 1.5 us on processors of 3 GHz, and never measured on real hardware. Without it, short handlers at a high
/// rate would take several times their budget.
pub const OVERHEAD: u64 = 1_250;

/// Returns the share of a time, in thousandths.
pub fn share_of(time: Ticks, share: u32) -> Ticks {
    Ticks(time.0.saturating_mul(share.into()) / 1_000)
}

/// State of one processor, which only that processor accesses.
#[derive(Debug, Default)]
pub struct Throttle {
    /// Time that may be spent until the next tick.
    left: AtomicU64,
    /// Time of the last tick.
    ticked: AtomicU64,
    /// Counters that are stopped until the next tick. Bit n is counter n.
    waiting: AtomicU32,
    /// The recording of branches is stopped until the next tick.
    traced: AtomicBool,
    /// Sampling by time is stopped until the next tick.
    timed: AtomicBool,
    /// Time at which they were stopped.
    since: AtomicU64,
    times: AtomicU64,
}

impl Throttle {
    pub const fn new() -> Self {
        Self {
            left: AtomicU64::new(0),
            ticked: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            traced: AtomicBool::new(false),
            timed: AtomicBool::new(false),
            since: AtomicU64::new(0),
            times: AtomicU64::new(0),
        }
    }

    /// Begins with the time that may be spent until the next tick. Called when the first session begins to sample on
    /// the processor: what the last one had spent is over.
    pub fn open(&self, now: Ticks, left: Ticks) {
        self.timed.store(false, Ordering::Relaxed);
        self.ticked.store(now.0, Ordering::Relaxed);
        self.left.store(left.0, Ordering::Relaxed);
    }

    /// Lowers the time that may be spent until the next tick to `most`, because another session may have brought a
    /// lower budget.
    pub fn limit(&self, most: Ticks) {
        self.left.store(self.left().min(most.0), Ordering::Relaxed);
    }

    fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Spends the time that the handler `measured`, and the `overhead` that it cannot measure. Returns whether they
    /// exceed what is left until the next tick.
    #[inline]
    pub fn spend(&self, measured: Ticks, overhead: Ticks) -> bool {
        let Some(left) = self.left().checked_sub(measured.0) else { return self.exhaust() };
        let Some(left) = left.checked_sub(overhead.0) else { return self.exhaust() };
        self.left.store(left, Ordering::Relaxed);
        false
    }

    /// Leaves nothing until the next tick. Returns true.
    #[cold]
    fn exhaust(&self) -> bool {
        self.left.store(0, Ordering::Relaxed);
        true
    }

    /// Notes counters that were stopped until the next tick, the recording of branches if it was `traced`, and sampling
    /// by time if it was `timed`.
    pub fn begin(&self, counters: CounterSet, traced: bool, timed: bool, now: Ticks) {
        self.timed.fetch_or(timed, Ordering::Relaxed);
        self.traced.fetch_or(traced, Ordering::Relaxed);
        let waiting = self.waiting().or(counters);
        self.waiting.store(waiting.bits(), Ordering::Relaxed);
        self.since.store(now.0, Ordering::Relaxed);
        self.times.store(self.times().wrapping_add(1), Ordering::Relaxed);
    }

    /// Returns whether anything is stopped until the next tick.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.is_time_waiting() || self.traced.load(Ordering::Relaxed) || !self.waiting().is_empty()
    }

    /// Removes counters that have no subscriber any more.
    pub fn forget(&self, counters: CounterSet) {
        self.waiting.store(self.waiting().without(counters).bits(), Ordering::Relaxed);
    }

    /// Returns whether sampling by time is stopped until the next tick.
    pub fn is_time_waiting(&self) -> bool {
        self.timed.load(Ordering::Relaxed)
    }

    /// Removes the branches.
    pub fn forget_branches(&self) {
        self.traced.store(false, Ordering::Relaxed);
    }

    /// Returns whether the last tick is as long ago as two ticks are apart.
    pub fn is_over(&self, now: Ticks, tick: Ticks) -> bool {
        self.elapsed(now) >= tick
    }

    fn elapsed(&self, now: Ticks) -> Ticks {
        now.saturating_since(Ticks(self.ticked.load(Ordering::Relaxed)))
    }

    /// Grants at a tick the `share` of the time since the last one. What may then be spent does not exceed the share of
    /// `most`. An interrupt that exceeded what was left is not charged to the next tick.
    pub fn extend(&self, now: Ticks, share: u32, most: Ticks) {
        let granted = share_of(self.elapsed(now), share);
        let left = self.left().saturating_add(granted.0).min(share_of(most, share).0);
        self.ticked.store(now.0, Ordering::Relaxed);
        self.left.store(left, Ordering::Relaxed);
    }

    /// Ends the pause, at a tick. Returns the counters that were stopped, whether the branches were, and since when.
    pub fn resume(&self) -> Option<(CounterSet, bool, Ticks)> {
        let waiting = self.waiting();
        self.waiting.store(0, Ordering::Relaxed);
        let traced = self.traced.load(Ordering::Relaxed);
        self.forget_branches();
        let timed = self.is_time_waiting();
        self.timed.store(false, Ordering::Relaxed);
        (traced || timed || !waiting.is_empty()).then(|| (waiting, traced, Ticks(self.since.load(Ordering::Relaxed))))
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

    /// A quarter.
    const SHARE: u32 = 250;

    /// A window that no test exceeds.
    const MOST: Ticks = Ticks(10_000);

    #[test]
    fn the_budget_is_for_all_interrupts_between_two_ticks_together() {
        let throttle = Throttle::default();
        throttle.open(Ticks(7), Ticks(100));
        let spend = |time| throttle.spend(Ticks(time), Ticks(0));
        assert_eq!([spend(60), spend(40), spend(1)], [false, false, true]);
        throttle.extend(Ticks(807), SHARE, MOST);
        assert_eq!([spend(200), spend(1), spend(u64::MAX)], [false, true, true], "twice the time, twice the budget");
        throttle.extend(Ticks(1_207), SHARE, MOST);
        assert_eq!([spend(100), spend(1)], [false, true], "the excess is forgotten");
        throttle.open(Ticks(1_300), Ticks(10));
        assert_eq!([spend(10), spend(1)], [false, true], "a new session inherits nothing");
    }

    #[test]
    fn what_cannot_be_measured_is_spent_too() {
        let throttle = Throttle::default();
        for (measured, overhead, is_spent) in [(60, 40, false), (60, 41, true), (u64::MAX, u64::MAX, true)] {
            throttle.open(Ticks(0), Ticks(100));
            assert_eq!(throttle.spend(Ticks(measured), Ticks(overhead)), is_spent, "{measured} {overhead}");
            assert_eq!(throttle.left(), 0);
        }
    }

    #[test]
    fn unused_time_at_a_tick_is_kept_up_to_the_maximum() {
        let throttle = Throttle::default();
        throttle.open(Ticks(0), Ticks(100));
        let spend = |time| throttle.spend(Ticks(time), Ticks(0));
        assert!(!spend(50));
        throttle.extend(Ticks(40), SHARE, MOST);
        assert_eq!([spend(60), spend(1)], [false, true]);
        (1..=100).for_each(|number| throttle.extend(Ticks(40 + number * 400), SHARE, Ticks(2_000)));
        assert_eq!([spend(500), spend(1)], [false, true]);
    }

    #[test]
    fn a_lower_budget_limits_what_is_left_and_a_higher_one_grants_nothing() {
        let throttle = Throttle::default();
        throttle.open(Ticks(0), share_of(Ticks(400), SHARE));
        let spend = |time| throttle.spend(Ticks(time), Ticks(0));
        throttle.limit(share_of(Ticks(400), 2 * SHARE));
        assert!(!spend(50));
        throttle.limit(share_of(Ticks(400), SHARE / 10));
        assert_eq!([spend(10), spend(1)], [false, true]);
    }

    #[test]
    fn stopped_counters_are_resumed_once_unless_they_are_removed() {
        let throttle = Throttle::default();
        let two = CounterSet::NONE.with(1).with(3);
        throttle.begin(two, false, false, Ticks(7));
        throttle.forget(CounterSet::NONE.with(3));
        assert_eq!(throttle.resume(), Some((CounterSet::NONE.with(1), false, Ticks(7))));
        assert_eq!(throttle.resume(), None);
        throttle.begin(two, false, false, Ticks(9));
        throttle.forget(two);
        assert_eq!((throttle.resume(), throttle.times()), (None, 2));
        throttle.begin(CounterSet::NONE, true, false, Ticks(11));
        assert_eq!(throttle.resume(), Some((CounterSet::NONE, true, Ticks(11))));
        throttle.begin(CounterSet::NONE, true, false, Ticks(12));
        throttle.forget_branches();
        assert_eq!(throttle.resume(), None);
        throttle.begin(CounterSet::NONE, false, true, Ticks(13));
        assert!(throttle.is_waiting() && throttle.is_time_waiting());
        assert_eq!(throttle.resume(), Some((CounterSet::NONE, false, Ticks(13))));
        throttle.begin(CounterSet::NONE, false, true, Ticks(14));
        throttle.open(Ticks(15), Ticks(0));
        assert_eq!(throttle.resume(), None, "a new session inherits nothing");
    }
}
