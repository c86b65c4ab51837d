//! Times and durations, by their units.

/// A time or a duration by the platform's clock, in its units. [`Platform::clock_frequency`](crate::Platform) returns
/// their number per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Ticks(pub u64);

impl Ticks {
    /// Returns the time from `earlier` to this time. The clock may wrap in between.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Self) -> Self {
        Self(self.0.wrapping_sub(earlier.0))
    }

    /// Returns the time after this time by a duration. The clock may wrap in between.
    #[must_use]
    pub const fn after(self, duration: Self) -> Self {
        Self(self.0.wrapping_add(duration.0))
    }

    /// Returns the time from `earlier` to this time, or 0 if it is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// Converts a duration by a clock with `frequency` units per second, at most 10^12.
    #[must_use]
    pub fn duration(self, frequency: u64) -> Duration100ns {
        let frequency = frequency.max(1);
        // Seconds, and the rest of one: a division of 128 bits would be a function of its own.
        let units = |ticks: u64| ticks.saturating_mul(Duration100ns::PER_SECOND);
        Duration100ns(units(self.0 / frequency).saturating_add(units(self.0 % frequency) / frequency))
    }
}

/// A duration, or the time since a fixed moment, in units of 100 ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Duration100ns(pub u64);

impl Duration100ns {
    /// Number of units in a second.
    pub const PER_SECOND: u64 = 10_000_000;

    /// Returns the time from `earlier` to this time, or 0 if it is later.
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_may_wrap_between_two_times() {
        for (earlier, duration) in [(0, 0), (5, 7), (u64::MAX - 2, 7), (u64::MAX, 1)] {
            let later = Ticks(earlier).after(Ticks(duration));
            assert_eq!(later.since(Ticks(earlier)), Ticks(duration), "{earlier} {duration}");
        }
        assert_eq!(Ticks(u64::MAX).after(Ticks(3)), Ticks(2));
        assert_eq!((Ticks(9).saturating_since(Ticks(2)), Ticks(2).saturating_since(Ticks(9))), (Ticks(7), Ticks(0)));
    }

    #[test]
    fn a_duration_has_ten_million_units_in_a_second_of_any_clock() {
        for (ticks, frequency, wanted) in [
            (3_000, 1_000, 30_000_000),
            (1, 3_579_545, 2),
            (10_000_000, 10_000_000, 10_000_000),
            (7, 0, 70_000_000),
            (u64::MAX, 1, u64::MAX),
            (u64::MAX, 10_000_000_000, 18_446_744_073_709_551),
            (999_999_999_999, 1_000_000_000_000, 9_999_999),
        ] {
            assert_eq!(Ticks(ticks).duration(frequency), Duration100ns(wanted), "{ticks} at {frequency}");
        }
        let since = |later, earlier| Duration100ns(later).saturating_since(Duration100ns(earlier));
        assert_eq!((since(9, 2), since(2, 9)), (Duration100ns(7), Duration100ns(0)));
    }
}
