//! The timers, by the addresses of their objects. This module runs no routine.

use crate::state::dpc_queues::{DpcQueues, Unknown};
use model::TimerMode;
use std::{
    collections::HashMap,
    ops::Range,
    time::{Duration, Instant},
};

/// The setting of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The DPC that is queued on expiry.
    pub dpc: Option<usize>,
    /// The processor on which the timer expires, unless its DPC has a target.
    pub processor: u32,
    /// The time of the next expiry; None if it is beyond the range of the clock.
    pub due: Option<Instant>,
    /// The initial delay.
    pub delay: Duration,
    /// The period; a timer without one expires once.
    pub period: Option<Duration>,
    /// The number of expiries so far.
    pub expiries: u64,
}

/// The clock at whose interrupts timers expire.
#[derive(Debug, Default)]
struct Clock {
    mode: TimerMode,
    /// The resolutions that drivers have requested, in units of 100 ns.
    requested: Vec<u64>,
    /// The time of a clock interrupt.
    start: Option<Instant>,
}

impl Clock {
    fn resolution(&self) -> u64 {
        self.mode.resolution(self.requested.iter().min().copied())
    }

    /// Returns when a timer expires.
    fn expires(&self, setting: &Setting) -> Option<Instant> {
        let (due, Some(start)) = (setting.due?, self.start) else { return setting.due };
        if self.mode == TimerMode::Exact {
            return Some(due);
        }
        let units = u64::try_from(due.saturating_duration_since(start).as_nanos().div_ceil(100)).ok()?;
        start.checked_add(Duration::from_nanos(self.mode.expires(units, setting.expiries, self.resolution()) * 100))
    }
}

/// The timers of all processors.
#[derive(Debug, Default)]
pub struct Timers {
    known: HashMap<usize, Option<Setting>>,
    clock: Clock,
}

impl Timers {
    /// Registers a timer that is not set. Returns false and changes nothing if it is set.
    pub fn initialize(&mut self, timer: usize) -> bool {
        let free = self.known.get(&timer).is_none_or(Option::is_none);
        if free {
            self.known.insert(timer, None);
        }
        free
    }

    /// Sets or cancels a timer. Returns whether it was set.
    ///
    /// # Errors
    /// The timer is unknown.
    pub fn set(&mut self, timer: usize, setting: Option<Setting>) -> Result<bool, Unknown> {
        let known = self.known.get_mut(&timer).ok_or(Unknown)?;
        Ok(std::mem::replace(known, setting).is_some())
    }

    /// Sets how timers expire from `now` on.
    pub fn set_mode(&mut self, mode: TimerMode, now: Instant) {
        (self.clock.mode, self.clock.start) = (mode, Some(now));
    }

    /// Adds or removes a request for a resolution of the clock, in units of 100 ns. Returns the resolution that
    /// results, or nothing if there is no request to remove.
    pub fn set_resolution(&mut self, request: Option<u64>) -> Option<u64> {
        match request {
            Some(resolution) => self.clock.requested.push(resolution),
            None => _ = self.clock.requested.pop()?,
        }
        Some(self.clock.resolution())
    }

    /// Expires the timers of a processor that are due at `now`, or all set timers without a time. Returns timers and
    /// DPCs in order of expiry, without a DPC if it runs with the next expiry. Timers without a period are no longer
    /// set afterwards.
    pub fn expire(&mut self, processor: u32, now: Option<Instant>, dpcs: &DpcQueues) -> Vec<(usize, Option<usize>)> {
        let mut expired = Vec::new();
        for (timer, known) in &mut self.known {
            let clock = &self.clock;
            let due =
                |setting: &&mut Setting| now.is_none_or(|now| clock.expires(setting).is_some_and(|due| due <= now));
            let Some(setting) = known.as_mut().filter(|setting| processor_of(setting, dpcs) == processor).filter(due)
            else {
                continue;
            };
            let is_merged = now.is_some() && setting.period.is_some() && clock.mode.is_merged(setting.expiries);
            expired.push((setting.due, *timer, setting.dpc.filter(|_| !is_merged)));
            setting.expiries += 1;
            match setting.period {
                None => *known = None,
                Some(period) => setting.due = next(setting.due, now, period),
            }
        }
        // Timers that are never due come last.
        expired.sort_unstable_by_key(|(due, timer, _)| (due.is_none(), *due, *timer));
        expired.into_iter().map(|(_, timer, dpc)| (timer, dpc)).collect()
    }

    /// Returns the time of the next expiry on a processor.
    #[must_use]
    pub fn next(&self, processor: u32, dpcs: &DpcQueues) -> Option<Instant> {
        let here = self.known.values().flatten().filter(|setting| processor_of(setting, dpcs) == processor);
        here.filter_map(|setting| self.clock.expires(setting)).min()
    }

    /// Restarts every set timer at `now`.
    pub fn restart(&mut self, now: Instant) {
        for setting in self.known.values_mut().flatten() {
            setting.due = now.checked_add(setting.period.unwrap_or(setting.delay));
        }
    }

    /// Returns the number of set timers.
    #[must_use]
    pub fn count_set(&self) -> usize {
        self.known.values().flatten().count()
    }

    /// Removes timers with an object in the address range, and cancels timers with a DPC or a DPC routine there.
    /// Returns whether one of them was set.
    pub fn forget(&mut self, addresses: &Range<usize>, dpcs: &DpcQueues) -> bool {
        let mut set = false;
        self.known.retain(|timer, setting| {
            let here = addresses.contains(timer);
            let dpc = setting.and_then(|setting| setting.dpc);
            if here || dpc.is_some_and(|dpc| addresses.contains(&dpc) || dpcs.calls_into(dpc, addresses)) {
                set |= setting.take().is_some();
            }
            !here
        });
        set
    }
}

fn processor_of(setting: &Setting, dpcs: &DpcQueues) -> u32 {
    setting.dpc.and_then(|dpc| dpcs.target(dpc)).unwrap_or(setting.processor)
}

/// Returns the next expiry: one period after the last, or after now if that is past. Missed expiries are not made up
/// for.
fn next(due: Option<Instant>, now: Option<Instant>, period: Duration) -> Option<Instant> {
    let next = due?.checked_add(period)?;
    match now {
        Some(now) if next <= now => now.checked_add(period),
        _ => Some(next),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// Returns timer 1, which expires once after 2 ms on processor 0, and timer 2, which expires every 10 ms on
    /// processor 1, the target of its DPC.
    fn two(start: Instant) -> (Timers, DpcQueues) {
        let (mut timers, mut dpcs) = (Timers::default(), DpcQueues::new(2));
        assert!(dpcs.initialize(0x100, 0x101, 0));
        assert!(dpcs.initialize(0x200, 0x201, 0));
        dpcs.set_target(0x200, 1).unwrap();
        let once = Setting {
            dpc: Some(0x100),
            processor: 0,
            due: Some(start + 2 * MILLISECOND),
            delay: 2 * MILLISECOND,
            period: None,
            expiries: 0,
        };
        let periodic = Setting {
            dpc: Some(0x200),
            due: Some(start + 10 * MILLISECOND),
            delay: 10 * MILLISECOND,
            period: Some(10 * MILLISECOND),
            ..once
        };
        for (timer, setting) in [(1, once), (2, periodic)] {
            assert!(timers.initialize(timer));
            assert_eq!(timers.set(timer, Some(setting)), Ok(false));
        }
        (timers, dpcs)
    }

    #[test]
    fn timers_expire_when_they_are_due_on_the_processor_of_their_dpc() {
        let start = Instant::now();
        let (mut timers, dpcs) = two(start);
        assert_eq!(timers.next(0, &dpcs), Some(start + 2 * MILLISECOND));
        assert_eq!(timers.next(1, &dpcs), Some(start + 10 * MILLISECOND));
        let late = Some(start + 12 * MILLISECOND);
        assert!(timers.expire(0, Some(start + MILLISECOND), &dpcs).is_empty());
        assert_eq!(timers.expire(0, late, &dpcs), [(1, Some(0x100))]);
        assert!(timers.expire(0, late, &dpcs).is_empty(), "it has no period");
        assert_eq!(timers.expire(1, late, &dpcs), [(2, Some(0x200))]);
        assert_eq!((timers.next(0, &dpcs), timers.count_set()), (None, 1));
        assert_eq!(timers.next(1, &dpcs), Some(start + 20 * MILLISECOND), "a period after it was due");
        timers.expire(1, Some(start + 45 * MILLISECOND), &dpcs);
        assert_eq!(timers.next(1, &dpcs), Some(start + 55 * MILLISECOND), "missed expiries are not made up for");
    }

    #[test]
    fn without_a_time_every_set_timer_expires() {
        let start = Instant::now();
        let (mut timers, mut dpcs) = two(start);
        dpcs.set_target(0x200, 0).unwrap();
        assert_eq!(timers.expire(0, None, &dpcs), [(1, Some(0x100)), (2, Some(0x200))]);
        assert_eq!(timers.expire(0, None, &dpcs), [(2, Some(0x200))]);
        assert!(timers.expire(1, None, &dpcs).is_empty());
    }

    #[test]
    fn a_timer_expires_at_the_clock_interrupts_and_drivers_set_their_rate() {
        let start = Instant::now();
        let (mut timers, dpcs) = two(start);
        let tick = Duration::from_nanos(model::DEFAULT_RESOLUTION * 100);
        timers.set_mode(TimerMode::Clock, start);
        assert_eq!(timers.next(1, &dpcs), Some(start + tick));
        assert!(timers.expire(1, Some(start + 10 * MILLISECOND), &dpcs).is_empty());
        assert_eq!(timers.set_resolution(Some(10_000)), Some(10_000));
        assert_eq!(timers.next(1, &dpcs), Some(start + 10 * MILLISECOND));
        timers.set_mode(TimerMode::Coarse, start);
        assert_eq!(timers.next(1, &dpcs), Some(start + tick), "not granted");
        assert_eq!(timers.set_resolution(None), Some(model::DEFAULT_RESOLUTION));
        assert_eq!(timers.set_resolution(None), None, "there is no request");
        assert_eq!(timers.expire(1, Some(start + tick), &dpcs), [(2, Some(0x200))]);
        timers.set_mode(TimerMode::Merged, start);
        let calls = (2..20).filter(|tick_number| {
            timers.expire(1, Some(start + tick * *tick_number), &dpcs).contains(&(2, Some(0x200)))
        });
        assert_eq!(calls.count(), 12, "two of three expiries run the DPC");
    }

    #[test]
    fn a_cancelled_timer_does_not_expire() {
        let (mut timers, dpcs) = two(Instant::now());
        assert_eq!(
            [timers.set(2, None), timers.set(2, None), timers.set(3, None)],
            [Ok(true), Ok(false), Err(Unknown)]
        );
        assert!(timers.expire(1, None, &dpcs).is_empty());
    }

    #[test]
    fn a_set_timer_cannot_be_initialized() {
        let (mut timers, _) = two(Instant::now());
        assert!(!timers.initialize(1));
        assert_eq!(timers.set(1, None), Ok(true));
        assert!(timers.initialize(1));
    }

    #[test]
    fn no_timer_is_due_after_a_restart() {
        let start = Instant::now();
        let (mut timers, dpcs) = two(start);
        let later = start + Duration::from_secs(1);
        timers.restart(later);
        assert_eq!(timers.next(0, &dpcs), Some(later + 2 * MILLISECOND));
        assert_eq!(timers.next(1, &dpcs), Some(later + 10 * MILLISECOND));
    }

    #[test]
    fn freed_memory_removes_its_timers_and_dpcs() {
        let (mut timers, dpcs) = two(Instant::now());
        assert!(!timers.forget(&(5..9), &dpcs));
        assert!(timers.forget(&(0x201..0x202), &dpcs), "the routine of its DPC is in the range");
        assert_eq!(timers.set(2, None), Ok(false));
        assert!(timers.forget(&(0x100..0x140), &dpcs), "the DPC is in the range");
        assert!(!timers.forget(&(0..3), &dpcs), "they are no longer set");
        assert_eq!(timers.set(1, None), Err(Unknown));
    }
}
