//! When a session began on a processor, and up to when it was last read there.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::suspend_time::SuspendTime;
use crate::time::{Duration100ns, Ticks};

/// Times of a session on a processor. The processor notes them itself where it starts, reads or stops counters: the
/// thread that makes it do so can be preempted before and after.
#[derive(Debug, Default)]
pub struct Times {
    begun: Moment,
    read: Moment,
}

/// A point in time, by the platform's clock.
#[derive(Debug, Default)]
struct Moment {
    now: AtomicU64,
    /// How long the machine had slept by then.
    asleep: AtomicU64,
}

impl Moment {
    fn set(&self, now: Ticks, sleeps: &SuspendTime) {
        self.now.store(now.0, Ordering::Relaxed);
        self.asleep.store(sleeps.asleep(now).0, Ordering::Relaxed);
    }

    fn load(&self) -> [Ticks; 2] {
        [&self.now, &self.asleep].map(|time| Ticks(time.load(Ordering::Relaxed)))
    }
}

impl Times {
    /// Notes that the session begins now.
    ///
    /// # IRQL
    /// Any.
    pub fn begin(&self, now: Ticks, sleeps: &SuspendTime) {
        self.begun.set(now, sleeps);
        self.read.set(now, sleeps);
    }

    /// Notes that the session is read or stopped now.
    ///
    /// # IRQL
    /// Any.
    pub fn read(&self, now: Ticks, sleeps: &SuspendTime) {
        self.read.set(now, sleeps);
    }

    /// Returns when the session began.
    pub fn begun(&self) -> Ticks {
        let [now, _] = self.begun.load();
        now
    }

    /// Returns the time from the beginning to the last reading, and the part of it in which the machine slept, by a
    /// clock with `frequency` units per second.
    pub fn passed(&self, frequency: u64) -> (Duration100ns, Duration100ns) {
        let ([begun, before], [read, by_then]) = (self.begun.load(), self.read.load());
        let whole = read.saturating_since(begun);
        (whole.duration(frequency), by_then.saturating_since(before).min(whole).duration(frequency))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_passed_ends_at_the_last_reading_and_says_what_part_was_sleep() {
        const FREQUENCY: u64 = 1_000_000;
        let (times, sleeps) = (Times::default(), SuspendTime::default());
        let passed = || {
            let (whole, asleep) = times.passed(FREQUENCY);
            (whole.0, asleep.0)
        };
        times.begin(Ticks(100), &sleeps);
        assert_eq!((times.begun(), passed()), (Ticks(100), (0, 0)));
        times.read(Ticks(130), &sleeps);
        sleeps.begin(Ticks(140));
        assert_eq!(passed(), (300, 0), "a sleep after the reading");
        times.read(Ticks(145), &sleeps);
        assert_eq!(passed(), (450, 50), "within a sleep");
        sleeps.end(Ticks(170));
        times.read(Ticks(180), &sleeps);
        assert_eq!(passed(), (800, 300));
        times.begin(Ticks(200), &sleeps);
        times.read(Ticks(190), &sleeps);
        assert_eq!(passed(), (0, 0), "read by a thread that was too late");
    }
}
