//! The subscribers of the samples of a counter.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use super::frequency;

/// Maximum number of sessions that sample at a time.
pub const MAX_SAMPLERS: u8 = 8;

/// A session that samples, by its number on every processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subscriber(pub u8);

/// A set of subscribers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subscribers(u8);

impl Subscribers {
    /// Creates the set from a mask: bit n is subscriber n.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the mask.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the subscribers of both sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set with one more subscriber.
    #[must_use]
    pub const fn with(self, subscriber: Subscriber) -> Self {
        Self(self.0 | 1 << (subscriber.0 & 7))
    }

    /// Returns whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the subscribers in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Subscriber> + use<> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let after = left & left.checked_sub(1)?;
            let subscriber = Subscriber((left.trailing_zeros() & 7) as u8);
            left = after;
            Some(subscriber)
        })
    }
}

/// What the handler needs to know about a counter besides its state.
#[derive(Debug, Default)]
pub struct CounterSubscriptions {
    /// Bit n is subscriber n.
    subscribers: AtomicU8,
    /// The counter, as its samples name it: loading it is cheaper than keeping a register.
    counter: AtomicU32,
    /// Interval with which the counter was loaded.
    loaded: AtomicU32,
    /// Samples per second to which the interval is adapted, or 0.
    frequency: AtomicU32,
    /// Count of the counter at the last tick.
    counted: AtomicU64,
    /// Number of overflows since the last tick, if the interval is adapted.
    overflows: AtomicU32,
}

impl CounterSubscriptions {
    pub const fn new() -> Self {
        Self {
            subscribers: AtomicU8::new(0),
            counter: AtomicU32::new(0),
            loaded: AtomicU32::new(0),
            frequency: AtomicU32::new(0),
            counted: AtomicU64::new(0),
            overflows: AtomicU32::new(0),
        }
    }

    /// Returns the subscribers.
    pub fn subscribers(&self) -> Subscribers {
        Subscribers(self.subscribers.load(Ordering::Relaxed))
    }

    /// Adds a subscriber.
    pub fn add(&self, subscriber: Subscriber) {
        self.subscribers.store(self.subscribers().0 | 1 << (subscriber.0 & 7), Ordering::Relaxed);
    }

    /// Removes a subscriber.
    pub fn remove(&self, subscriber: Subscriber) {
        self.subscribers.store(self.others(subscriber), Ordering::Relaxed);
    }

    /// Returns whether there is another subscriber.
    pub fn has_others(&self, subscriber: Subscriber) -> bool {
        self.others(subscriber) != 0
    }

    fn others(&self, subscriber: Subscriber) -> u8 {
        self.subscribers().0 & !(1 << (subscriber.0 & 7))
    }

    /// Returns the counter, and the interval with which it was loaded.
    pub fn loaded(&self) -> (u32, u32) {
        (self.counter.load(Ordering::Relaxed), self.loaded.load(Ordering::Relaxed))
    }

    /// Sets the counter.
    pub fn set_counter(&self, counter: u8) {
        self.counter.store(counter.into(), Ordering::Relaxed);
    }

    /// Sets the interval with which the counter was loaded.
    pub fn reloaded(&self, interval: u32) {
        self.loaded.store(interval, Ordering::Relaxed);
    }

    /// Returns the samples per second to which the interval is adapted, if it is.
    pub fn frequency(&self) -> Option<u32> {
        Some(self.frequency.load(Ordering::Relaxed)).filter(|frequency| *frequency != 0)
    }

    /// Sets the samples per second to which the interval is adapted, or 0 for a constant interval. The count of events
    /// begins anew.
    pub fn set_frequency(&self, frequency: u32) {
        self.frequency.store(frequency, Ordering::Relaxed);
        self.counted.store(0, Ordering::Relaxed);
        self.overflows.store(0, Ordering::Relaxed);
    }

    /// Returns the interval that follows `interval` after another overflow, if it is adapted.
    pub fn after_overflow(&self, interval: u32) -> Option<u32> {
        let number = self.overflows.load(Ordering::Relaxed).saturating_add(1);
        self.overflows.store(number, Ordering::Relaxed);
        Some(frequency::after_overflow(interval, number, self.frequency()?))
    }

    /// Returns the events since the last tick, from the count of now. The overflows are counted anew.
    pub fn events_since(&self, count: u64) -> u64 {
        let before = self.counted.load(Ordering::Relaxed);
        self.counted.store(count, Ordering::Relaxed);
        self.overflows.store(0, Ordering::Relaxed);
        count.saturating_sub(before)
    }
}
