//! Conditions of samples: of an overflow there is a sample only if two other counts had a certain ratio in the window
//! that it ends.
//!
//! A window is the time of the processor from one overflow of the counter that was served to the next, whatever threads
//! run in it. Both counts are read where the counters run again, at its beginning and at its end, so that they are of
//! the same time: an interval that is adapted and a late interrupt change the length of a window, but not its ratio.

use core::sync::atomic::Ordering;

use crate::event::Condition;
use crate::sync::AtomicU64;

/// Maximum number of events of a session that have a condition on one processor.
pub const MAX_CONDITIONS: usize = 4;

/// The condition of the samples of a counter for a subscriber, and the counts at the beginning of the window. Only the
/// processor writes it, at PROFILE_LEVEL.
#[derive(Debug, Default)]
pub struct Window {
    /// Both counters of the ratio, the counter that is sampled, and [`CONDITION`] and [`ABOVE`]; 0 without a condition.
    what: AtomicU64,
    /// [`Condition::limit`].
    limit: AtomicU64,
    /// The counts of both counters at its beginning.
    counts: [AtomicU64; 2],
    /// Number of windows that did not meet the condition.
    unmet: AtomicU64,
}

/// There is a condition.
const CONDITION: u16 = 1;

/// The ratio has to be above the limit, not below it.
const ABOVE: u16 = 2;

impl Window {
    /// Sets the condition of the samples of `counter`: its ratio is of these counters.
    pub fn set(&self, counter: u8, condition: Condition, ratio: [u8; 2]) {
        let [first, second] = ratio.map(u16::from);
        let flags = CONDITION | if condition.is_above { ABOVE } else { 0 };
        self.what.store(zerocopy::transmute!([first, second, u16::from(counter), flags]), Ordering::Relaxed);
        self.limit.store(zerocopy::transmute!(condition.limit), Ordering::Relaxed);
    }

    fn what(&self) -> [u16; 4] {
        zerocopy::transmute!(self.what.load(Ordering::Relaxed))
    }

    /// Returns whether it is the one of a counter.
    pub fn is_of(&self, counter: u8) -> bool {
        let [_, _, own, flags] = self.what();
        flags != 0 && own == u16::from(counter)
    }

    /// Returns whether there is no condition.
    pub fn is_unused(&self) -> bool {
        self.what.load(Ordering::Relaxed) == 0
    }

    /// Returns the number of windows that did not meet the condition.
    pub fn unmet(&self) -> u64 {
        self.unmet.load(Ordering::Relaxed)
    }

    /// Begins a window: `count` returns the count of a counter. Returns how much each has counted in the one before.
    pub fn begin(&self, count: impl Fn(u8) -> u64) -> [u64; 2] {
        let next = |cell: &AtomicU64, counter: u16| {
            let now = count((counter & 0xFF) as u8);
            let before = cell.load(Ordering::Relaxed);
            cell.store(now, Ordering::Relaxed);
            now.wrapping_sub(before)
        };
        let ([first, second, ..], [first_cell, second_cell]) = (self.what(), &self.counts);
        [next(first_cell, first), next(second_cell, second)]
    }

    /// Returns whether a window in which both counters counted so much meets the condition, and counts it if not.
    pub fn is_met(&self, [first, second]: [u64; 2]) -> bool {
        let [over, under]: [u32; 2] = zerocopy::transmute!(self.limit.load(Ordering::Relaxed));
        // Multiplied, because a division is slow, and there may be nothing to divide by.
        let (ratio, limit) = (u128::from(first) * u128::from(under), u128::from(second) * u128::from(over));
        let [.., flags] = self.what();
        let is_met = if flags & ABOVE == 0 { ratio < limit } else { ratio > limit };
        if !is_met {
            self.unmet.store(self.unmet().wrapping_add(1), Ordering::Relaxed); // with one writer
        }
        is_met
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns whether a window meets the condition in which counter 3 counts `first` and counter 7 counts `second`.
    fn is_met(condition: Condition, first: u64, second: u64, before: [u64; 2]) -> bool {
        let window = Window::default();
        assert!(window.is_unused() && !window.is_of(0));
        window.set(5, condition, [3, 7]);
        assert!(!window.is_unused() && window.is_of(5) && !window.is_of(3));
        let count = |of: [u64; 2]| move |counter| if counter == 3 { of[0] } else { of[1] };
        window.begin(count(before));
        let counted = window.begin(count([before[0].wrapping_add(first), before[1].wrapping_add(second)]));
        let is_met = window.is_met(counted);
        assert_eq!(window.unmet(), u64::from(!is_met));
        is_met
    }

    #[test]
    fn a_ratio_is_strictly_below_or_above_the_limit() {
        for (first, second, below, above) in [
            (499_999, 1_000_000, true, false),
            (500_000, 1_000_000, false, false),
            (500_001, 1_000_000, false, true),
            (0, 1, true, false),
            (0, 0, false, false),
            (1, 0, false, true),
        ] {
            for limit in [[1, 2], [0x7FFF_FFFF, 0xFFFF_FFFE]] {
                let ratio = [0, 1];
                for (is_above, wanted) in [(false, below), (true, above)] {
                    let condition = Condition { ratio, is_above, limit };
                    assert_eq!(is_met(condition, first, second, [0, 0]), wanted, "{first}/{second}, {condition:?}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn no_count_and_no_limit_overflows(
            first: u64,
            second: u64,
            limit: [u32; 2],
            before: [u64; 2],
            is_above: bool,
        ) {
            let [over, under] = limit.map(num_of);
            let (ratio, of_limit) = (num_of(first) * under, num_of(second) * over);
            let wanted = if is_above { ratio > of_limit } else { ratio < of_limit };
            prop_assert_eq!(is_met(Condition { ratio: [0, 1], is_above, limit }, first, second, before), wanted);
        }
    }

    proptest! {
        /// Counters that reload each other decide as the handler does.
        #[test]
        fn the_count_that_is_not_reached_is_that_of_the_windows_that_meet_the_condition(
            interval in 4_096..=0x7FFF_FFFF_u32,
            limit in [1..=100_000_u32, 1..=100_000_u32],
            other: u32,
            is_above: bool,
        ) {
            let ratio = if is_above { [0, 1] } else { [1, 0] };
            let condition = Condition { ratio, is_above, limit };
            let exact = num_of(interval) * num_of(limit[usize::from(is_above)]) / num_of(limit[usize::from(!is_above)]);
            let Some((index, reached)) = condition.reached(0, interval) else {
                prop_assert!(!(4_096..0x7FFF_FFFF).contains(&exact), "{}", exact);
                return Ok(());
            };
            prop_assert_eq!(index, 1);
            for count in [0, reached - 1, reached, reached + 1, other] {
                let counted = if is_above { [interval.into(), count.into()] } else { [count.into(), interval.into()] };
                let window = Window::default();
                window.set(5, condition, [3, 7]);
                prop_assert_eq!(window.is_met(counted), count < reached, "{}", count);
            }
        }
    }

    fn num_of(number: impl Into<u128>) -> u128 {
        number.into()
    }
}
