//! The arithmetic of one counter.

use crate::bits::ones;

/// Identifies a counter of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CounterId {
    /// A general-purpose counter. Its select register chooses the event.
    General(u8),
    /// A fixed-function counter (Intel, version 2 and later). It counts one event only.
    Fixed(u8),
    /// A metric of fixed counter 3: a byte of `PERF_METRICS`.
    Metric(u8),
}

impl CounterId {
    /// Returns the bit of the counter in Intel's global registers, `IA32_PEBS_ENABLE` and records; 0 for a metric.
    pub(crate) fn bit(self) -> u64 {
        match self {
            Self::General(number) => 1 << number,
            Self::Fixed(number) => 1 << (32 + u32::from(number)),
            Self::Metric(_) => 0,
        }
    }
}

/// A counter of `width` bits that counts up and wraps.
#[derive(Debug, Clone)]
pub(crate) struct Counter {
    value: u64,
    width: u32,
}

impl Counter {
    pub(crate) fn new(width: u32) -> Self {
        Self { value: 0, width }
    }

    pub(crate) fn read(&self) -> u64 {
        self.value
    }

    /// Loads the counter and drops bits above its width. Where the manual says that those bits fault, check
    /// [`Self::reserved`] first.
    pub(crate) fn write(&mut self, value: u64) {
        self.value = value & ones(self.width);
    }

    /// Returns a mask of the bits above the width.
    pub(crate) fn reserved(&self) -> u64 {
        !ones(self.width)
    }

    /// Counts `events` and returns the number of overflows.
    pub(crate) fn add(&mut self, events: u64) -> u64 {
        let total = u128::from(self.value) + u128::from(events);
        self.write(u64::try_from(total & u128::from(u64::MAX)).unwrap_or_default());
        u64::try_from(total >> self.width).unwrap_or(u64::MAX)
    }

    /// Returns a copy of the counter that is loaded with `value`; bits above its width are dropped.
    pub(crate) fn loaded(&self, value: u64) -> Self {
        let mut counter = self.clone();
        counter.write(value);
        counter
    }

    /// Returns the number of events until the counter overflows. For a 64-bit counter at zero, the result saturates at
    /// `u64::MAX`, one less than the true number.
    pub(crate) fn until_overflow(&self) -> u64 {
        (ones(self.width) - self.value).saturating_add(1)
    }
}
