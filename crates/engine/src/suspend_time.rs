//! Time that the machine spends asleep.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use protocol::ErrorCode;
use protocol::status::STATUS_DEVICE_NOT_READY;

use crate::reply::Refusal;
use crate::time::Ticks;

/// The refusal of requests that access registers while the machine sleeps.
pub const ASLEEP: Refusal = Refusal::new(STATUS_DEVICE_NOT_READY, ErrorCode::Asleep);

/// Number and total time of all sleeps. One thread at a time writes, because sleep and wake alternate.
#[derive(Debug, Default)]
pub struct SuspendTime {
    times: AtomicU64,
    /// Total of the sleeps that have ended.
    asleep: AtomicU64,
    since: AtomicU64,
    sleeping: AtomicBool,
}

impl SuspendTime {
    /// Notes that the machine is about to sleep. Repeated calls change nothing.
    ///
    /// # IRQL
    /// Any.
    pub fn begin(&self, now: Ticks) {
        if !self.sleeping.swap(true, Ordering::AcqRel) {
            self.since.store(now.0, Ordering::Relaxed);
        }
    }

    /// Notes that the machine is awake; returns how long it slept, or 0 if it did not.
    ///
    /// # IRQL
    /// Any.
    pub fn end(&self, now: Ticks) -> Ticks {
        if !self.sleeping.swap(false, Ordering::AcqRel) {
            return Ticks(0);
        }
        let slept = now.saturating_since(self.since());
        self.times.fetch_add(1, Ordering::Relaxed);
        self.asleep.fetch_add(slept.0, Ordering::Relaxed);
        slept
    }

    /// Returns whether the machine sleeps or is about to.
    ///
    /// # IRQL
    /// Any.
    pub fn is_sleeping(&self) -> bool {
        self.sleeping.load(Ordering::Acquire)
    }

    /// Returns the number of completed sleeps.
    pub fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    /// Returns the total time asleep up to `now`.
    pub fn asleep(&self, now: Ticks) -> Ticks {
        let this_time = if self.is_sleeping() { now.saturating_since(self.since()) } else { Ticks(0) };
        Ticks(self.asleep.load(Ordering::Relaxed) + this_time.0)
    }

    fn since(&self) -> Ticks {
        Ticks(self.since.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_add_up_and_a_call_out_of_turn_changes_nothing() {
        let sleeps = SuspendTime::default();
        let end = |now| sleeps.end(Ticks(now)).0;
        let asleep = |now| sleeps.asleep(Ticks(now)).0;
        assert_eq!((end(5), asleep(5), sleeps.times()), (0, 0, 0));
        sleeps.begin(Ticks(10));
        sleeps.begin(Ticks(12));
        assert_eq!((asleep(15), sleeps.times()), (5, 0), "in the middle");
        assert_eq!((end(30), asleep(40), sleeps.times()), (20, 20, 1));
        sleeps.begin(Ticks(50));
        assert_eq!((end(53), end(60), asleep(70), sleeps.times()), (3, 0, 23, 2));
    }
}
