//! Time that the machine spends asleep.

use core::sync::atomic::Ordering;

use protocol::ErrorCode;
use protocol::status::STATUS_DEVICE_NOT_READY;

use crate::reply::Refusal;
use crate::sync::AtomicU64;
use crate::time::Ticks;

/// The refusal of requests that access registers while the machine sleeps.
pub const ASLEEP: Refusal = Refusal::new(STATUS_DEVICE_NOT_READY, ErrorCode::Asleep);

/// Number and total time of all sleeps. One thread at a time writes, because sleep and wake alternate; any may read.
///
/// One word has the whole account, so that a reader on another processor never sees a part of a change. While the machine
/// is awake it is the total of the sleeps that have ended. While it sleeps, it is [`SLEEPING`] and the time at which the
/// sleep would have begun if it were the only one.
#[derive(Debug, Default)]
pub struct SuspendTime {
    times: AtomicU64,
    account: AtomicU64,
    /// The total before the sleep in progress, or of all that have ended. Only the thread that writes uses it.
    before: AtomicU64,
}

/// The machine sleeps. No clock reaches this bit.
const SLEEPING: u64 = 1 << 63;

impl SuspendTime {
    /// Notes that the machine is about to sleep. Repeated calls change nothing.
    ///
    /// # IRQL
    /// Any.
    pub fn begin(&self, now: Ticks) {
        let total = self.account.load(Ordering::Relaxed);
        if total & SLEEPING == 0 {
            // Release: whoever sees the sleep sees what was done before it.
            self.account.store(now.0.saturating_sub(total) & !SLEEPING | SLEEPING, Ordering::Release);
        }
    }

    /// Notes that the machine is awake; returns how long it slept, or 0 if it did not.
    ///
    /// # IRQL
    /// Any.
    pub fn end(&self, now: Ticks) -> Ticks {
        let account = self.account.load(Ordering::Relaxed);
        if account & SLEEPING == 0 {
            return Ticks(0);
        }
        let total = asleep_at(account, now);
        let before = self.before.swap(total, Ordering::Relaxed);
        self.times.fetch_add(1, Ordering::Relaxed);
        self.account.store(total, Ordering::Release);
        Ticks(total.saturating_sub(before))
    }

    /// Returns whether the machine sleeps or is about to.
    ///
    /// # IRQL
    /// Any.
    pub fn is_sleeping(&self) -> bool {
        self.account.load(Ordering::Acquire) & SLEEPING != 0
    }

    /// Returns the number of completed sleeps.
    pub fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    /// Returns the total time asleep up to `now`.
    pub fn asleep(&self, now: Ticks) -> Ticks {
        Ticks(asleep_at(self.account.load(Ordering::Acquire), now))
    }
}

/// Returns the total time asleep up to `now` by the account.
const fn asleep_at(account: u64, now: Ticks) -> u64 {
    if account & SLEEPING == 0 { account } else { now.0.saturating_sub(account & !SLEEPING) }
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
