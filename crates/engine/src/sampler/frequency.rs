//! Adaptation of an interval to a frequency: a constant number of samples per second at any rate of events.

use pmu::interval::IntervalRange;

use crate::time::Ticks;

/// Returns the interval that follows `interval`, after `events` events in the time `elapsed` by a clock of `clock`
/// units per second, for `frequency` samples per second.
///
/// A longer interval is taken at once, since the shorter one costs the processor too much. A shorter interval is
/// approached by an eighth of the distance, since a rate that falls for a moment often rises again.
pub fn next(interval: u32, events: u64, elapsed: Ticks, clock: u64, frequency: u32) -> u32 {
    if events == 0 {
        return interval;
    }
    let parts = u128::from(elapsed.0.max(1)) * u128::from(frequency.max(1));
    let wanted = u128::from(events) * u128::from(clock) / parts;
    let wanted = IntervalRange::COUNTER.clamp(u32::try_from(wanted).unwrap_or(u32::MAX));
    if wanted > interval { wanted } else { interval - (interval - wanted).div_ceil(8) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLOCK: u64 = 10_000_000;

    proptest! {
        #[test]
        fn a_steady_rate_leads_to_the_frequency_wanted(
            rate in 10_000_000..4_000_000_000_u64,
            frequency in 100..2_000_u32,
            first in 4_096..0x7FFF_FFFF_u32,
        ) {
            let mut interval = first;
            for _ in 0..200 {
                interval = next(interval, rate / 100, Ticks(CLOCK / 100), CLOCK, frequency);
            }
            let samples = rate / u64::from(interval);
            let wanted = u64::from(frequency).min(rate / 4_096);
            prop_assert!(samples.abs_diff(wanted) <= wanted / 20 + 1, "{} of {}", samples, wanted);
        }

        #[test]
        fn no_rate_leaves_the_range(
            interval in 4_096..=0x7FFF_FFFF_u32,
            events: u64,
            elapsed: u64,
            clock: u64,
            frequency: u32,
        ) {
            let next = next(interval, events, Ticks(elapsed), clock, frequency);
            prop_assert!((4_096..=0x7FFF_FFFF).contains(&next));
        }
    }

    #[test]
    fn an_idle_processor_keeps_its_interval() {
        assert_eq!(next(65_536, 0, Ticks(CLOCK), CLOCK, 1_000), 65_536);
    }

    #[test]
    fn a_longer_interval_is_taken_at_once_and_a_shorter_one_by_an_eighth_of_the_way() {
        for (interval, events, wanted) in [
            (40_000, 80_000, 80_000),
            (80_000, 80_000, 80_000),
            (80_000, 40_000, 75_000),
            (80_000, 79_999, 79_999),
            (80_000, 79_991, 79_998),
            (4_104, 1, 4_103),
            (4_096, 1, 4_096),
            (0x7FFF_FFFF, u64::MAX, 0x7FFF_FFFF),
        ] {
            let found = next(interval, events, Ticks(CLOCK / 1_000), CLOCK, 1_000);
            assert_eq!(found, wanted, "{interval}, {events} events in a millisecond");
        }
    }
}
