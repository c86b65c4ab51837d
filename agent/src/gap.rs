//! The times in which the agent has no counters.

use std::collections::BTreeMap;
use std::time::Duration;

/// Why the agent has no counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GapReason {
    /// It gave them to another session of halprof.
    Yielded,
    /// The driver refuses to start the session, because something that it needs is in use.
    Refused,
    /// The driver is not running, or is about to stop.
    Driver,
}

impl GapReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Yielded, Self::Refused, Self::Driver];

    /// Returns the value of the label.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Yielded => "yielded",
            Self::Refused => "refused",
            Self::Driver => "driver",
        }
    }
}

/// A gap that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Why.
    pub reason: GapReason,
    /// When its time was last added to the sum.
    since: Duration,
}

/// All gaps so far. Moments are the time since the agent began.
#[derive(Debug, Default)]
pub struct Gaps {
    current: Option<Gap>,
    sums: BTreeMap<GapReason, (u64, Duration)>,
}

impl Gaps {
    /// Begins a gap. In another gap, that one ends.
    pub fn begin(&mut self, reason: GapReason, now: Duration) {
        self.update(now);
        if self.current.is_none_or(|gap| gap.reason != reason) {
            self.sums.entry(reason).or_default().0 += 1;
            self.current = Some(Gap { reason, since: now });
        }
    }

    /// Ends the gap, if there is one.
    pub fn end(&mut self, now: Duration) {
        self.update(now);
        self.current = None;
    }

    /// Adds the time of the current gap until now.
    pub fn update(&mut self, now: Duration) {
        if let Some(gap) = &mut self.current {
            self.sums.entry(gap.reason).or_default().1 += now.saturating_sub(gap.since);
            gap.since = now;
        }
    }

    /// Returns the current gap.
    pub const fn current(&self) -> Option<Gap> {
        self.current
    }

    /// Returns the number of gaps with a reason, and their time.
    pub fn of(&self, reason: GapReason) -> (u64, Duration) {
        self.sums.get(&reason).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_counted_once_and_their_time_goes_on() {
        let second = Duration::from_secs;
        let mut gaps = Gaps::default();
        gaps.begin(GapReason::Yielded, second(10));
        gaps.begin(GapReason::Yielded, second(12));
        gaps.update(second(13));
        assert_eq!(gaps.of(GapReason::Yielded), (1, second(3)));
        gaps.begin(GapReason::Driver, second(15));
        gaps.end(second(16));
        gaps.end(second(20));
        assert_eq!(gaps.of(GapReason::Yielded), (1, second(5)));
        assert_eq!(gaps.of(GapReason::Driver), (1, second(1)));
        assert_eq!(gaps.of(GapReason::Refused), (0, second(0)));
        gaps.begin(GapReason::Yielded, second(30));
        assert_eq!(gaps.of(GapReason::Yielded).0, 2);
    }
}
