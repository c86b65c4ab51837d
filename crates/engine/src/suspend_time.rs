//! Time that the machine spends asleep.

use core::sync::atomic::{AtomicU32, Ordering};

use protocol::ErrorCode;
use protocol::status::STATUS_DEVICE_NOT_READY;

use crate::reply::Refusal;
use crate::sync::AtomicU64;
use crate::time::Ticks;

/// The refusal of requests that access registers while the machine sleeps.
pub const ASLEEP: Refusal = Refusal::new(STATUS_DEVICE_NOT_READY, ErrorCode::Asleep);

/// In [`SuspendTime::state`]: the machine sleeps or is about to. The other bits count the [accesses](Access).
const SLEEPING: u32 = 1 << 31;

/// In [`SuspendTime::account`]: the machine sleeps. No clock reaches this bit.
const RUNNING: u64 = 1 << 63;

/// Number and total time of all sleeps. One thread at a time writes, because sleep and wake alternate; any may read.
///
/// One word has the whole account of the time, so that a reader on another processor never sees a part of a change.
/// While the machine is awake it is the total of the sleeps that have ended. While it sleeps, it is `RUNNING` and the
/// time at which the sleep would have begun if it were the only one.
#[derive(Debug, Default)]
pub struct SuspendTime {
    times: AtomicU64,
    account: AtomicU64,
    /// The total before the sleep in progress, or of all that have ended. Only the thread that writes uses it.
    before: AtomicU64,
    state: AtomicU32,
}

/// Guard: registers are accessed below PROFILE_LEVEL, where the machine can begin to sleep meanwhile.
#[derive(Debug)]
pub struct Access<'a>(&'a SuspendTime);

impl Drop for Access<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_sub(1, Ordering::Release);
    }
}

impl SuspendTime {
    /// Notes that the machine is about to sleep. Repeated calls change nothing.
    ///
    /// # IRQL
    /// Any.
    pub fn begin(&self, now: Ticks) {
        if self.state.fetch_or(SLEEPING, Ordering::AcqRel) & SLEEPING == 0 {
            let total = self.account.load(Ordering::Relaxed);
            self.account.store(now.0.saturating_sub(total) & !RUNNING | RUNNING, Ordering::Release);
        }
    }

    /// Notes that the machine is awake; returns how long it slept, or 0 if it did not.
    ///
    /// # IRQL
    /// Any.
    pub fn end(&self, now: Ticks) -> Ticks {
        if !self.is_sleeping() {
            return Ticks(0);
        }
        let total = asleep_at(self.account.load(Ordering::Relaxed), now);
        let before = self.before.swap(total, Ordering::Relaxed);
        self.times.fetch_add(1, Ordering::Relaxed);
        self.account.store(total, Ordering::Release);
        self.state.fetch_and(!SLEEPING, Ordering::AcqRel);
        Ticks(total.saturating_sub(before))
    }

    /// Returns whether the machine sleeps or is about to.
    ///
    /// # IRQL
    /// Any.
    pub fn is_sleeping(&self) -> bool {
        self.state.load(Ordering::Acquire) & SLEEPING != 0
    }

    /// Begins an access of registers below PROFILE_LEVEL.
    ///
    /// # Errors
    /// `ASLEEP`.
    ///
    /// # IRQL
    /// Any.
    pub fn access(&self) -> Result<Access<'_>, Refusal> {
        let access = Access(self);
        let before = self.state.fetch_add(1, Ordering::Acquire);
        if before & SLEEPING == 0 { Ok(access) } else { Err(ASLEEP) }
    }

    /// Returns whether registers are accessed below PROFILE_LEVEL. After [`begin`](Self::begin), the caller waits until
    /// they are not.
    ///
    /// # IRQL
    /// Any.
    pub fn is_accessed(&self) -> bool {
        self.state.load(Ordering::Acquire) & !SLEEPING != 0
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
    if account & RUNNING == 0 { account } else { now.0.saturating_sub(account & !RUNNING) }
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

    #[test]
    fn no_access_begins_during_a_sleep_and_one_in_progress_is_known() {
        let sleeps = SuspendTime::default();
        let before = sleeps.access().unwrap();
        sleeps.begin(Ticks(10));
        assert!(sleeps.is_accessed());
        assert!(sleeps.access().is_err());
        assert!(sleeps.is_accessed(), "the refused one was none");
        drop(before);
        assert!(!sleeps.is_accessed() && sleeps.is_sleeping());
        sleeps.end(Ticks(20));
        drop(sleeps.access().unwrap());
        assert!(!sleeps.is_accessed() && !sleeps.is_sleeping());
    }
}
