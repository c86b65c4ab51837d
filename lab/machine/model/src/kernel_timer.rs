//! When the periodic timers of Windows expire. A timer expires at the first clock interrupt at or after its due time,
//! and its DPC runs later. The clock interrupts come 64 times per second unless a driver or a program requests a finer
//! resolution ("Timer Accuracy" and ExSetTimerResolution in the documentation of the WDK), which Windows may not grant.
//!
//! All times are in units of 100 ns.

/// Time between two clock interrupts if nothing requests less: 1/64 s.
pub const DEFAULT_RESOLUTION: u64 = 156_250;

/// Minimum time between two clock interrupts.
pub const FINEST_RESOLUTION: u64 = 5_000;

/// Delay of a late expiry: more than two periods of a timer of 10 ms.
const DELAY: u64 = 250_000;

/// How timers expire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TimerMode {
    /// When they are due. Real clocks are not as good.
    #[default]
    Exact,
    /// At the clock interrupts, which come at the requested resolution.
    Clock,
    /// At the clock interrupts, which come 64 times per second whatever is requested.
    Coarse,
    /// Like [`Clock`](Self::Clock), but every fourth expiry is 25 ms late, as with a processor at a high level.
    Late,
    /// Like [`Clock`](Self::Clock), but at every third expiry the DPC of the timer is still queued, so that it runs
    /// once for two expiries.
    Merged,
}

impl TimerMode {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::Exact, Self::Clock, Self::Coarse, Self::Late, Self::Merged];

    /// Returns the time between two clock interrupts, if drivers have requested `requested` or nothing.
    #[must_use]
    pub fn resolution(self, requested: Option<u64>) -> u64 {
        match requested {
            Some(requested) if self != Self::Coarse => requested.clamp(FINEST_RESOLUTION, DEFAULT_RESOLUTION),
            _ => DEFAULT_RESOLUTION,
        }
    }

    /// Returns when the expiry with this `number`, which is due at `due`, happens with this resolution.
    #[must_use]
    pub const fn expires(self, due: u64, number: u64, resolution: u64) -> u64 {
        let interrupt = due.div_ceil(resolution) * resolution;
        match self {
            Self::Exact => due,
            Self::Late if number % 4 == 3 => interrupt + DELAY,
            Self::Clock | Self::Coarse | Self::Late | Self::Merged => interrupt,
        }
    }

    /// Returns whether the DPC of the expiry with this `number` runs only with that of the next one.
    #[must_use]
    pub const fn is_merged(self, number: u64) -> bool {
        matches!(self, Self::Merged) && number % 3 == 2
    }

    /// Returns the times at which the DPC of a periodic timer runs that is set at time 0.
    pub fn expirations(self, period: u64, resolution: u64) -> impl Iterator<Item = u64> {
        let mut due = period;
        let all = (0..).map(move |number| {
            let now = self.expires(due, number, resolution);
            due = next_due(due, now, period);
            (number, now)
        });
        all.filter(move |(number, _)| !self.is_merged(*number)).map(|(_, now)| now)
    }
}

/// Returns when a periodic timer is due after it has expired at `now`. One that is late by a period or more is
/// resynchronized: the expiries that it missed are not made up for.
#[must_use]
pub const fn next_due(due: u64, now: u64, period: u64) -> u64 {
    let next = due + period;
    if next <= now { now + period } else { next }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of expirations in ten seconds.
    fn in_ten_seconds(mode: TimerMode, period: u64, requested: Option<u64>) -> usize {
        mode.expirations(period, mode.resolution(requested)).take_while(|time| *time <= 100_000_000).count()
    }

    #[test]
    fn a_timer_of_ten_milliseconds_expires_64_times_per_second_at_the_default_clock() {
        assert_eq!(in_ten_seconds(TimerMode::Exact, 100_000, None), 1_000);
        assert!((639..=641).contains(&in_ten_seconds(TimerMode::Clock, 100_000, None)));
        assert!((639..=641).contains(&in_ten_seconds(TimerMode::Coarse, 100_000, Some(10_000))));
        assert_eq!(in_ten_seconds(TimerMode::Clock, 100_000, Some(10_000)), 1_000, "it is requested");
        assert!((300..600).contains(&in_ten_seconds(TimerMode::Late, 100_000, None)));
        assert!((420..430).contains(&in_ten_seconds(TimerMode::Merged, 100_000, None)));
    }

    #[test]
    fn no_request_makes_the_clock_finer_than_it_can_be() {
        assert_eq!(TimerMode::Clock.resolution(Some(1)), FINEST_RESOLUTION);
        assert_eq!(TimerMode::Clock.resolution(Some(u64::MAX)), DEFAULT_RESOLUTION);
    }

    #[test]
    fn times_ascend_in_every_mode() {
        for mode in TimerMode::ALL {
            let times: Vec<u64> = mode.expirations(10_000, mode.resolution(Some(10_000))).take(1_000).collect();
            assert!(times.is_sorted_by(|one, other| one < other), "{mode:?}");
        }
    }
}
