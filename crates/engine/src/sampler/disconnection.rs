//! Processors whose counters do not interrupt: the entry of the local vector table is not the HAL's any more. After a
//! sleep the HAL may not have set it up again, and other software can reset it.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::subscriptions::{Subscriber, Subscribers};
use crate::time::Ticks;

/// State of one processor, which only that processor accesses.
#[derive(Debug, Default)]
pub struct Disconnection {
    /// Subscribers, as a set, that get no samples; none if the entry is the HAL's.
    concerned: AtomicU8,
    /// Those of them that have no record of it yet.
    untold: AtomicU8,
    /// When it was found for the first of them.
    since: AtomicU64,
}

impl Disconnection {
    pub const fn new() -> Self {
        Self { concerned: AtomicU8::new(0), untold: AtomicU8::new(0), since: AtomicU64::new(0) }
    }

    /// Notes that the entry was found not to be the HAL's, while these subscribers sample.
    pub fn note(&self, subscribers: Subscribers, now: Ticks) {
        let concerned = self.concerned.load(Ordering::Relaxed);
        if concerned == 0 {
            self.since.store(now.0, Ordering::Relaxed);
        }
        let new = subscribers.bits() & !concerned;
        self.untold.store(self.untold.load(Ordering::Relaxed) | new, Ordering::Relaxed);
        self.concerned.store(concerned | new, Ordering::Relaxed);
    }

    /// Notes that the entry is the HAL's. Returns whom that concerns, and since when it was not.
    pub fn end(&self) -> Option<(Subscribers, Ticks)> {
        let concerned = Subscribers::from_bits(self.concerned.load(Ordering::Relaxed));
        self.concerned.store(0, Ordering::Relaxed);
        self.untold.store(0, Ordering::Relaxed);
        (!concerned.is_empty()).then(|| (concerned, Ticks(self.since.load(Ordering::Relaxed))))
    }

    /// Returns the subscribers that have no record of it yet.
    pub const fn untold(&self) -> &AtomicU8 {
        &self.untold
    }

    /// Removes a subscriber that leaves the processor.
    pub fn forget(&self, subscriber: Subscriber) {
        for set in [&self.concerned, &self.untold] {
            remove(set, subscriber);
        }
    }
}

/// Removes a subscriber from a set that only the current processor accesses.
pub fn remove(set: &AtomicU8, subscriber: Subscriber) {
    let alone = Subscribers::default().with(subscriber).bits();
    set.store(set.load(Ordering::Relaxed) & !alone, Ordering::Relaxed);
}
