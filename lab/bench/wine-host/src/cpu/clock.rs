//! Event rates in real time: the number of events in a number of ticks of the time-stamp counter.

use model::{Interrupting, Mode, Selected};
use std::collections::BTreeMap;

/// Rates are in events per this number of ticks.
const RATE_TICKS: u64 = 10_000;

/// The unit of fractions of an event: rates are per 10,000 ticks, and the modes are in percent.
const PARTS_PER_EVENT: u128 = RATE_TICKS as u128 * 100;

/// Of every hundred events, this many happen in user mode and the rest in kernel mode.
const USER_PERCENT: u64 = 70;

/// Event, unit mask, events per [`RATE_TICKS`]. One table serves all vendors: shared numbers mean the same here.
const RATES: [(u16, u16, u64); 34] = [
    (0x3C, 0x00, 10_000), // Intel: cycles
    (0x3C, 0x01, 10_000), // Intel: reference cycles
    (0x00, 0x03, 10_000), // Intel: reference cycles, on fixed counter 2
    (0xC0, 0x00, 14_000), // instructions
    (0xC0, 0x01, 14_000), // Intel: instructions, as Sandy Bridge to Cascade Lake record them
    (0xC4, 0x00, 2_000),  // Intel: branches
    (0xC4, 0x04, 2_000),  // Intel: the same, as they record them
    (0xC5, 0x00, 40),     // Intel: mispredicted branches
    (0xC5, 0x04, 40),     // Intel: the same, as they record them
    (0x2E, 0x4F, 100),    // Intel: last-level cache references
    (0x2E, 0x41, 20),     // Intel: last-level cache misses
    (0xA4, 0x01, 60_000), // Intel: slots, and the metrics that divide them
    (0x00, 0x80, 24_000),
    (0x00, 0x81, 6_000),
    (0x00, 0x82, 12_000),
    (0x00, 0x83, 18_000),
    (0x00, 0x84, 3_000),
    (0x00, 0x85, 4_000),
    (0x00, 0x86, 9_000),
    (0x00, 0x87, 10_000),
    (0x76, 0x00, 10_000), // AMD: cycles
    (0xC2, 0x00, 2_000),  // AMD: branches
    (0xC3, 0x00, 40),     // AMD: mispredicted branches
    (0x40, 0x00, 5_000),  // AMD: data cache accesses
    (0x41, 0x00, 150),    // AMD: data cache misses
    (0x41, 0x01, 150),    // AMD: the same, where a unit mask must be given
    (0x80, 0x00, 4_000),  // AMD: instruction cache fetches
    (0x81, 0x00, 60),     // AMD: instruction cache misses
    (0x7D, 0x07, 100),    // AMD: requests to the level 2 cache
    (0x13, 0x01, 10_000), // NetBurst: cycles
    (0x02, 0x01, 14_000), // NetBurst: instructions
    (0x06, 0x0F, 2_000),  // NetBurst: branches
    (0x03, 0x01, 40),     // NetBurst: mispredicted branches
    (0x70C, 0x00, 20),    // NetBurst: cache misses
];

/// Returns the events per [`RATE_TICKS`]. An event that is not in the table has a rate derived from its number, so that
/// interchanged counters are noticed.
fn rate(selected: Selected) -> u64 {
    let plain = selected.cmask == 0 && !selected.invert && !selected.edge;
    let known = RATES.iter().find(|(event, umask, _)| plain && (*event, *umask) == (selected.event, selected.umask));
    known.map_or_else(
        || {
            let number = u64::from(selected.event) << 16 | u64::from(selected.umask) << 8 | u64::from(selected.cmask);
            let flags = u64::from(selected.invert) << 1 | u64::from(selected.edge);
            1 + (number << 2 | flags) * 31 % 997
        },
        |(_, _, rate)| *rate,
    )
}

/// The clock of one processor. It carries fractions of events over to the next call, so that the size of the steps does
/// not change the total.
#[derive(Debug)]
pub struct Clock {
    /// The time-stamp counter up to which events have happened; None before real time starts.
    reached: Option<u64>,
    skipped: u64,
    carry: BTreeMap<(Selected, bool), u64>,
    /// Factor of all rates from now on.
    factor: u32,
}

impl Default for Clock {
    fn default() -> Self {
        Self { reached: None, skipped: 0, carry: BTreeMap::new(), factor: 1 }
    }
}

impl Clock {
    /// Returns the ticks by which this clock is behind `now`: 0 at the first call, and 0 if `now` is earlier.
    pub fn behind(&mut self, now: u64) -> u64 {
        now.saturating_sub(*self.reached.get_or_insert(now))
    }

    /// Advances the time by `ticks`.
    pub fn advance(&mut self, ticks: u64) {
        self.reached = self.reached.map(|reached| reached.saturating_add(ticks));
    }

    /// Advances the time by `ticks` without events, and counts them as skipped.
    pub fn skip(&mut self, ticks: u64) {
        self.advance(ticks);
        self.skipped = self.skipped.saturating_add(ticks);
    }

    /// Returns the ticks that were skipped because the machine was too slow.
    #[must_use]
    pub const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Restarts the time at the next call of [`behind`](Self::behind). Time before it causes no events.
    pub fn restart(&mut self) {
        self.reached = None;
    }

    /// Lets every event happen `factor` times as often from now on.
    pub const fn set_factor(&mut self, factor: u32) {
        self.factor = factor;
    }

    /// Returns the parts of [`PARTS_PER_EVENT`] that happen in one tick.
    fn parts(&self, selected: Selected, mode: Mode) -> u128 {
        let percent = if mode == Mode::User { USER_PERCENT } else { 100 - USER_PERCENT };
        u128::from(rate(selected) * percent) * u128::from(self.factor)
    }

    /// Returns how often `selected` happens in `mode` in the next `ticks`.
    pub fn count_events(&mut self, selected: Selected, mode: Mode, ticks: u64) -> u64 {
        let total = u128::from(ticks) * self.parts(selected, mode) + self.carry(selected, mode);
        let carry = u64::try_from(total % PARTS_PER_EVENT).unwrap_or_default();
        self.carry.insert((selected, mode == Mode::User), carry);
        u64::try_from(total / PARTS_PER_EVENT).unwrap_or(u64::MAX)
    }

    /// Returns the number of ticks after which a counter has the events that it needs to overflow.
    #[must_use]
    pub fn ticks_until(&self, counter: &Interrupting) -> u64 {
        let Interrupting { selected, user, kernel, events } = *counter;
        let modes = [(Mode::User, user), (Mode::Kernel, kernel)].into_iter().filter(|(_, counts)| *counts);
        let modes: Vec<_> = modes.map(|(mode, _)| (self.parts(selected, mode), self.carry(selected, mode))).collect();
        let (each, begun) = modes.iter().fold((0, 0), |(each, begun), mode| (each + mode.0, begun + mode.1));
        let wanted = (u128::from(events) * PARTS_PER_EVENT).saturating_sub(begun);
        let enough = |ticks: u128| {
            let happened: u128 = modes.iter().map(|(parts, carry)| (ticks * parts + carry) / PARTS_PER_EVENT).sum();
            happened >= u128::from(events)
        };
        // The lower bound assumes that the modes can combine their fractions of an event; each mode keeps its own.
        let (mut few, mut enough_at) = match each {
            0 => return u64::MAX,
            each => (wanted.div_ceil(each), (wanted + 2 * PARTS_PER_EVENT).div_ceil(each)),
        };
        while few < enough_at {
            let middle = few.midpoint(enough_at);
            if enough(middle) {
                enough_at = middle;
            } else {
                few = middle + 1;
            }
        }
        u64::try_from(few).unwrap_or(u64::MAX)
    }

    fn carry(&self, selected: Selected, mode: Mode) -> u128 {
        self.carry.get(&(selected, mode == Mode::User)).map_or(0, |carry| u128::from(*carry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event: u16, umask: u16) -> Selected {
        Selected { event, umask, cmask: 0, invert: false, edge: false }
    }

    #[test]
    fn many_small_steps_count_as_much_as_one_large_step() {
        for selected in [event(0xC0, 0), event(0xC3, 0), event(0x123, 0x45)] {
            let (mut small, mut large) = (Clock::default(), Clock::default());
            for mode in [Mode::User, Mode::Kernel] {
                let steps: u64 = (0..10_000).map(|step| small.count_events(selected, mode, step % 7)).sum();
                let ticks = (0..10_000).map(|step| step % 7).sum();
                assert_eq!(steps, large.count_events(selected, mode, ticks), "{selected:?} {mode:?}");
            }
        }
    }

    #[test]
    fn rates_follow_the_table() {
        let mut clock = Clock::default();
        for (number, umask, expected) in [(0x3C, 0, 1_000_000), (0xC0, 0, 1_400_000), (0xC3, 0, 4_000)] {
            let user = clock.count_events(event(number, umask), Mode::User, 1_000_000);
            let kernel = clock.count_events(event(number, umask), Mode::Kernel, 1_000_000);
            assert_eq!((user, kernel), (expected * 7 / 10, expected * 3 / 10));
        }
    }

    #[test]
    fn modified_and_unknown_events_have_their_own_rates() {
        let edge = Selected { edge: true, ..event(0xC0, 0) };
        assert_ne!(rate(edge), rate(event(0xC0, 0)));
        assert_ne!(rate(event(0x123, 1)), rate(event(0x123, 2)));
        assert!((0..=u16::MAX).all(|number| rate(event(number, 0xFF)) > 0));
    }

    #[test]
    fn a_factor_applies_to_what_happens_after_it() {
        let mut clock = Clock::default();
        let instructions = event(0xC0, 0);
        assert_eq!(clock.count_events(instructions, Mode::User, 10_000), 9_800);
        let counter = Interrupting { selected: instructions, user: true, kernel: false, events: 98_000 };
        assert_eq!(clock.ticks_until(&counter), 100_000);
        clock.set_factor(100);
        assert_eq!(clock.ticks_until(&counter), 1_000);
        assert_eq!(clock.count_events(instructions, Mode::User, 10_000), 980_000);
        clock.set_factor(1);
        assert_eq!(clock.count_events(instructions, Mode::User, 10_000), 9_800);
    }

    #[test]
    fn time_that_does_not_advance_causes_no_events() {
        let mut clock = Clock::default();
        assert_eq!([clock.behind(100), clock.behind(130)], [0, 30]);
        clock.advance(30);
        assert_eq!([clock.behind(120), clock.behind(131)], [0, 1]);
        clock.restart();
        assert_eq!(clock.behind(1_000), 0);
    }

    #[test]
    fn elapsed_time_equals_advanced_plus_skipped_plus_behind() {
        let mut clock = Clock::default();
        assert_eq!(clock.behind(1_000), 0);
        let mut lived = 0;
        for (now, pass, skip) in [(1_100, 40, 0), (1_250, 10, 200), (1_250, 0, 0), (9_000, 5_000, 750)] {
            clock.advance(pass);
            clock.skip(skip);
            lived += pass;
            assert_eq!(clock.behind(now), now - 1_000 - lived - clock.skipped());
        }
        assert_eq!(clock.skipped(), 950);
    }

    #[test]
    fn ticks_until_returns_the_first_tick_with_enough_events() {
        let modes = [(true, true), (true, false), (false, true)];
        let events = [1, 2, 3, 99, 65_536, 1 << 40];
        for selected in [event(0xC0, 0), event(0x3C, 0), event(0xC5, 0), event(0x123, 0x45)] {
            for ((user, kernel), events) in modes.into_iter().flat_map(|modes| events.map(|events| (modes, events))) {
                let happen = |before: u64, ticks: u64| {
                    let mut clock = Clock::default();
                    for mode in [Mode::User, Mode::Kernel] {
                        clock.count_events(selected, mode, before);
                    }
                    let until = clock.ticks_until(&Interrupting { selected, user, kernel, events });
                    let of = |mode, counts: bool, clock: &mut Clock| {
                        if counts { clock.count_events(selected, mode, until + ticks - 1) } else { 0 }
                    };
                    of(Mode::User, user, &mut clock) + of(Mode::Kernel, kernel, &mut clock)
                };
                for before in [0, 1, 77, 10_001] {
                    let what = format!("{selected:?} {user} {kernel} {events} after {before}");
                    assert!(happen(before, 1) >= events, "{what}");
                    assert!(happen(before, 0) < events, "{what}");
                }
            }
        }
    }

    #[test]
    fn the_longest_time_does_not_overflow() {
        assert!(Clock::default().count_events(event(0xC0, 0), Mode::User, u64::MAX) > u64::MAX / 2);
    }
}
