//! Live time: how many of each event happen in so many ticks of the time-stamp counter.

use model::{Mode, Selected};
use std::collections::BTreeMap;

/// Rates are in events per so many ticks.
const TICKS: u64 = 10_000;

/// Of every hundred events, those in user mode; the rest happen in kernel mode.
const USER_PERCENT: u64 = 70;

/// Event, unit mask, events per [`TICKS`]. One table for both vendors: the numbers that they share mean the same here.
const RATES: [(u16, u8, u64); 17] = [
    (0x3C, 0x00, 10_000), // Intel: cycles
    (0x3C, 0x01, 10_000), // Intel: reference cycles
    (0x00, 0x03, 10_000), // Intel: reference cycles, on fixed counter 2
    (0xC0, 0x00, 14_000), // instructions
    (0xC4, 0x00, 2_000),  // Intel: branches
    (0xC5, 0x00, 40),     // Intel: mispredicted branches
    (0x2E, 0x4F, 100),    // Intel: last-level cache references
    (0x2E, 0x41, 20),     // Intel: last-level cache misses
    (0x76, 0x00, 10_000), // AMD: cycles
    (0xC2, 0x00, 2_000),  // AMD: branches
    (0xC3, 0x00, 40),     // AMD: mispredicted branches
    (0x40, 0x00, 5_000),  // AMD: data cache accesses
    (0x41, 0x00, 150),    // AMD: data cache misses
    (0x41, 0x01, 150),    // AMD: the same, where a unit mask must be given
    (0x80, 0x00, 4_000),  // AMD: instruction cache fetches
    (0x81, 0x00, 60),     // AMD: instruction cache misses
    (0x7D, 0x07, 100),    // AMD: requests to the level 2 cache
];

/// Events per [`TICKS`]. What is not in the table has a rate of its own, made of its number: counters that were
/// exchanged show.
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

/// The clock of one processor. What is less than one event is kept for the next time, so that no event is lost or made
/// up, however often one asks.
#[derive(Debug, Default)]
pub struct Clock {
    last: Option<u64>,
    carry: BTreeMap<(Selected, bool), u64>,
}

impl Clock {
    /// Ticks since this was last asked; none the first time, and none when the time-stamp counter went back.
    pub fn elapsed(&mut self, now: u64) -> u64 {
        let last = self.last.replace(now).unwrap_or(now);
        now.saturating_sub(last)
    }

    /// Lets the time go by without events.
    pub fn skip(&mut self) {
        self.last = None;
    }

    /// How often `selected` happens in `mode` in the next `ticks`.
    pub fn happen(&mut self, selected: Selected, mode: Mode, ticks: u64) -> u64 {
        const WHOLE: u128 = TICKS as u128 * 100;
        let user = mode == Mode::User;
        let percent = if user { USER_PERCENT } else { 100 - USER_PERCENT };
        let carry = self.carry.entry((selected, user)).or_default();
        let total = u128::from(ticks) * u128::from(rate(selected) * percent) + u128::from(*carry);
        *carry = u64::try_from(total % WHOLE).unwrap_or_default();
        u64::try_from(total / WHOLE).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event: u16, umask: u8) -> Selected {
        Selected { event, umask, cmask: 0, invert: false, edge: false }
    }

    #[test]
    fn many_small_steps_give_what_one_large_step_gives() {
        for selected in [event(0xC0, 0), event(0xC3, 0), event(0x123, 0x45)] {
            let (mut small, mut large) = (Clock::default(), Clock::default());
            for mode in [Mode::User, Mode::Kernel] {
                let steps: u64 = (0..10_000).map(|step| small.happen(selected, mode, step % 7)).sum();
                let ticks = (0..10_000).map(|step| step % 7).sum();
                assert_eq!(steps, large.happen(selected, mode, ticks), "{selected:?} {mode:?}");
            }
        }
    }

    #[test]
    fn rates_are_those_of_the_table() {
        let mut clock = Clock::default();
        for (number, umask, expected) in [(0x3C, 0, 1_000_000), (0xC0, 0, 1_400_000), (0xC3, 0, 4_000)] {
            let user = clock.happen(event(number, umask), Mode::User, 1_000_000);
            let kernel = clock.happen(event(number, umask), Mode::Kernel, 1_000_000);
            assert_eq!((user, kernel), (expected * 7 / 10, expected * 3 / 10));
        }
    }

    #[test]
    fn an_event_with_modifiers_or_unknown_has_a_rate_of_its_own() {
        let edge = Selected { edge: true, ..event(0xC0, 0) };
        assert_ne!(rate(edge), rate(event(0xC0, 0)));
        assert_ne!(rate(event(0x123, 1)), rate(event(0x123, 2)));
        assert!((0..=u16::MAX).all(|number| rate(event(number, 0xFF)) > 0));
    }

    #[test]
    fn time_that_does_not_go_forward_brings_nothing() {
        let mut clock = Clock::default();
        assert_eq!([clock.elapsed(100), clock.elapsed(130), clock.elapsed(120), clock.elapsed(121)], [0, 30, 0, 1]);
        clock.skip();
        assert_eq!(clock.elapsed(1_000), 0);
    }

    #[test]
    fn no_amount_of_time_overflows() {
        assert!(Clock::default().happen(event(0xC0, 0), Mode::User, u64::MAX) > u64::MAX / 2);
    }
}
