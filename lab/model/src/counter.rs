//! The arithmetic of one counter.

use crate::bits::ones;

/// Which counter of the processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CounterId {
    /// A general-purpose counter: it counts what its select register says.
    General(u8),
    /// A fixed-function counter (Intel, version 2 and later): it counts one event only.
    Fixed(u8),
}

/// A counter of `width` bits. It only ever counts up, and wraps.
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

    /// Loads the counter; bits above its width are dropped. Where the manual says they fault, ask [`Self::reserved`].
    pub(crate) fn write(&mut self, value: u64) {
        self.value = value & ones(self.width);
    }

    /// The bits above the width.
    pub(crate) fn reserved(&self) -> u64 {
        !ones(self.width)
    }

    /// Counts `events` and tells how many times that passed through zero. Each pass is an overflow.
    pub(crate) fn add(&mut self, events: u64) -> u64 {
        let total = u128::from(self.value) + u128::from(events);
        self.write(u64::try_from(total & u128::from(u64::MAX)).unwrap_or_default());
        u64::try_from(total >> self.width).unwrap_or(u64::MAX)
    }

    /// The same with another value; bits above its width are dropped.
    pub(crate) fn loaded(&self, value: u64) -> Self {
        let mut counter = self.clone();
        counter.write(value);
        counter
    }

    /// How many events until it passes through zero. Of a 64-bit counter at zero, one less than the truth.
    pub(crate) fn until_overflow(&self) -> u64 {
        (ones(self.width) - self.value).saturating_add(1)
    }
}
