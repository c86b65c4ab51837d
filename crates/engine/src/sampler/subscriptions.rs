//! The subscribers of the samples of a counter.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use pmu::ProcessorIndex;

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

    /// Returns the set without a subscriber.
    #[must_use]
    pub const fn without(self, subscriber: Subscriber) -> Self {
        Self(self.0 & !(1 << (subscriber.0 & 7)))
    }

    /// Returns whether a subscriber is among them.
    #[must_use]
    pub const fn has(self, subscriber: Subscriber) -> bool {
        self.0 >> (subscriber.0 & 7) & 1 != 0
    }

    /// Returns whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the subscribers in ascending order.
    pub fn iter(self) -> impl Iterator<Item = Subscriber> + use<> {
        let mut left = u32::from(self.0);
        core::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let subscriber = Subscriber((left.trailing_zeros() & 7) as u8);
            left &= left.wrapping_sub(1);
            Some(subscriber)
        })
    }
}

/// Bits of the subscribers.
const SUBSCRIBERS: u32 = 0xFF;

/// The interval of the counter is adapted to a frequency.
const ADAPTED: u32 = 1 << 8;

/// Bit 0 of the subscribers that have a condition.
const CONDITIONAL: u32 = 1 << 16;

/// What the handler needs to know about a counter besides its state.
#[derive(Debug, Default)]
pub struct CounterSubscriptions {
    /// Bit n is subscriber n, [`ADAPTED`], and [`CONDITIONAL`] and the bits after it: the handler loads all at once.
    flags: AtomicU32,
    /// The processor, and in the upper half the counter, as its samples name them: one load and one store of both.
    place: AtomicU64,
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
            flags: AtomicU32::new(0),
            place: AtomicU64::new(0),
            loaded: AtomicU32::new(0),
            frequency: AtomicU32::new(0),
            counted: AtomicU64::new(0),
            overflows: AtomicU32::new(0),
        }
    }

    /// Returns the subscribers.
    pub fn subscribers(&self) -> Subscribers {
        self.flags().0
    }

    /// Returns the subscribers, and whether the interval is adapted.
    #[inline]
    pub fn flags(&self) -> (Subscribers, bool) {
        let flags = self.flags.load(Ordering::Relaxed);
        (Subscribers((flags & SUBSCRIBERS) as u8), flags & ADAPTED != 0)
    }

    /// Returns the subscribers that have a condition.
    pub fn conditional(&self) -> Subscribers {
        Subscribers(((self.flags.load(Ordering::Relaxed) / CONDITIONAL) & SUBSCRIBERS) as u8)
    }

    /// Adds a subscriber, which may have a condition.
    pub fn add(&self, subscriber: Subscriber, has_condition: bool) {
        let bits = if has_condition { 1 | CONDITIONAL } else { 1 };
        self.flags.fetch_or(bits << (subscriber.0 & 7), Ordering::Relaxed);
    }

    /// Removes a subscriber.
    pub fn remove(&self, subscriber: Subscriber) {
        self.flags.fetch_and(!((1 | CONDITIONAL) << (subscriber.0 & 7)), Ordering::Relaxed);
    }

    /// Returns whether there is another subscriber.
    pub fn has_others(&self, subscriber: Subscriber) -> bool {
        self.others(subscriber) != 0
    }

    fn others(&self, subscriber: Subscriber) -> u8 {
        self.subscribers().0 & !(1 << (subscriber.0 & 7))
    }

    /// Returns the processor and the counter.
    #[inline]
    pub fn place(&self) -> [u32; 2] {
        zerocopy::transmute!(self.place.load(Ordering::Relaxed))
    }

    /// Sets the processor and the counter.
    pub fn set_place(&self, processor: ProcessorIndex, counter: u8) {
        let place: u64 = zerocopy::transmute!([processor.number(), counter.into()]);
        self.place.store(place, Ordering::Relaxed);
    }

    /// Returns the interval with which the counter was loaded.
    pub fn loaded(&self) -> u32 {
        self.loaded.load(Ordering::Relaxed)
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
        if frequency == 0 {
            self.flags.fetch_and(!ADAPTED, Ordering::Relaxed);
        } else {
            self.flags.fetch_or(ADAPTED, Ordering::Relaxed);
        }
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
