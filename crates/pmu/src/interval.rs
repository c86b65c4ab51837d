//! Intervals: events between two interrupts, or units of 100 ns for ProfileTime.

use crate::source::Source;

/// Default and range of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IntervalRange {
    /// The interval until another one is set.
    pub default: u32,
    /// The minimum.
    pub minimum: u32,
    /// The maximum.
    pub maximum: u32,
}

impl IntervalRange {
    /// Range for sources that a counter serves, as `wpr -profilesources` shows them. The maximum is the largest
    /// interval that the 32-bit, sign-extending write to a counter can arm (SDM Vol. 3B 21.2.8, "Full-Width Writes").
    pub const COUNTER: Self = Self { default: 65_536, minimum: 4_096, maximum: 0x7FFF_FFFF };

    /// Range for ProfileTime, in units of 100 ns: default 1 ms, from 122.1 us to 100 ms.
    pub const TIMER: Self = Self { default: 10_000, minimum: 1_221, maximum: 1_000_000 };

    /// Returns the range for a source.
    #[must_use]
    pub const fn of(source: Source) -> Self {
        if source.0 == Source::TIME.0 { Self::TIMER } else { Self::COUNTER }
    }

    /// Returns the nearest interval in the range.
    #[must_use]
    pub fn clamp(self, wanted: u32) -> u32 {
        wanted.clamp(self.minimum, self.maximum)
    }
}
