//! The time of an event, and the part of it in which the event had a counter.

use std::cmp::Ordering;

use protocol::CountRecord;

use super::numbers::real;

/// Times of an event in units of 100 ns, without the time in which the machine slept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Time in which the session ran.
    pub enabled: u64,
    /// Part of it in which the event had a counter: less than it only if the event took turns.
    pub running: u64,
}

impl Times {
    /// Returns the times of a record.
    #[must_use]
    pub fn of(record: &CountRecord) -> Self {
        let enabled = record.enabled.saturating_sub(record.asleep);
        Self { enabled, running: record.running.min(enabled) }
    }

    /// Returns the sum of both times.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            enabled: self.enabled.saturating_add(other.enabled),
            running: self.running.saturating_add(other.running),
        }
    }

    /// Returns whether the event was without a counter for a part of the time.
    #[must_use]
    pub fn took_turns(self) -> bool {
        self.running < self.enabled
    }

    /// Returns whether the event never had a counter.
    #[must_use]
    pub fn is_uncounted(self) -> bool {
        self.running == 0 && self.enabled > 0
    }

    /// Returns whether the count for all the time is an estimate from a part of it.
    #[must_use]
    pub fn is_scaled(self) -> bool {
        self.took_turns() && !self.is_uncounted()
    }

    /// Returns the share of the time in which the event had a counter, 1 if no time passed.
    #[must_use]
    pub fn share(self) -> f64 {
        if self.took_turns() { real(self.running.into()) / real(self.enabled.into()) } else { 1.0 }
    }

    /// Returns a count as if the event had had a counter all the time.
    #[must_use]
    pub fn scale(self, count: u64) -> f64 {
        if !self.is_scaled() {
            return real(count.into());
        }
        real(u128::from(count) * u128::from(self.enabled)) / real(self.running.into())
    }

    /// Compares the shares of the time in which events had counters.
    #[must_use]
    pub fn by_share(&self, other: &Self) -> Ordering {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        product(self.running, other.enabled).cmp(&product(other.running, self.enabled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_share_of_time_is_the_least() {
        let (all, half, none) =
            (Times { enabled: 10, running: 10 }, Times { enabled: 4, running: 2 }, Times { enabled: 9, running: 0 });
        assert_eq!([all, half].into_iter().min_by(Times::by_share), Some(half));
        assert_eq!([none, half, all].into_iter().min_by(Times::by_share), Some(none));
        assert_eq!((all.share(), half.share(), none.share(), Times::default().share()), (1.0, 0.5, 0.0, 1.0));
    }
}
