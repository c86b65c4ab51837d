//! Time that the machine spends asleep.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use protocol::ErrorCode;
use protocol::status::STATUS_DEVICE_NOT_READY;

use crate::reply::Refusal;

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
    pub fn begin(&self, now: u64) {
        if !self.sleeping.swap(true, Ordering::AcqRel) {
            self.since.store(now, Ordering::Relaxed);
        }
    }

    /// Notes that the machine is awake; returns how long it slept, or 0 if it did not.
    ///
    /// # IRQL
    /// Any.
    pub fn end(&self, now: u64) -> u64 {
        if !self.sleeping.swap(false, Ordering::AcqRel) {
            return 0;
        }
        let slept = now.saturating_sub(self.since.load(Ordering::Relaxed));
        self.times.fetch_add(1, Ordering::Relaxed);
        self.asleep.fetch_add(slept, Ordering::Relaxed);
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
    pub fn asleep(&self, now: u64) -> u64 {
        let this_time = if self.is_sleeping() { now.saturating_sub(self.since.load(Ordering::Relaxed)) } else { 0 };
        self.asleep.load(Ordering::Relaxed) + this_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_add_up_and_a_call_out_of_turn_changes_nothing() {
        let sleeps = SuspendTime::default();
        assert_eq!((sleeps.end(5), sleeps.asleep(5), sleeps.times()), (0, 0, 0));
        sleeps.begin(10);
        sleeps.begin(12);
        assert_eq!((sleeps.asleep(15), sleeps.times()), (5, 0), "in the middle");
        assert_eq!((sleeps.end(30), sleeps.asleep(40), sleeps.times()), (20, 20, 1));
        sleeps.begin(50);
        assert_eq!((sleeps.end(53), sleeps.end(60), sleeps.asleep(70), sleeps.times()), (3, 0, 23, 2));
    }
}
