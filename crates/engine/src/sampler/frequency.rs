//! Adaptation of an interval to a frequency: a constant number of samples per second at any rate of events.

use pmu::interval::IntervalRange;

use super::TICKS_PER_SECOND;
use crate::time::Ticks;

/// How many times too frequent the samples of a tick are before an overflow changes the interval.
const TOO_OFTEN: u32 = 4;

/// Number of overflows in a tick before one changes the interval, at any frequency.
const MIN_OVERFLOWS: u32 = 8;

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

/// Returns the interval that follows `interval` after the overflow with this number since the last tick, for
/// `frequency` samples per second: a longer one, if there were many more than a tick should have.
///
/// Ticks alone would be too slow. When an idle processor becomes busy, its short interval can cost hundreds of
/// interrupts before the next tick. Fewer overflows are left to the average of the tick, because events that come in
/// bursts overflow often for a moment.
///
/// # References
/// Linux, `kernel/events/core.c`, `__perf_event_overflow`, which adjusts the period as well.
#[inline]
pub fn after_overflow(interval: u32, number: u32, frequency: u32) -> u32 {
    let enough = (TOO_OFTEN * frequency / TICKS_PER_SECOND).max(MIN_OVERFLOWS);
    if number < enough { interval } else { IntervalRange::COUNTER.clamp(interval.saturating_mul(2)) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use protocol::MAX_FREQUENCY;

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
    fn an_overflow_lengthens_the_interval_only_after_many_others() {
        for (interval, number, frequency, wanted) in [
            (65_536, 1, 49, 65_536),
            (65_536, 7, 49, 65_536),
            (65_536, 8, 49, 131_072),
            (65_536, 39, 1_000, 65_536),
            (65_536, 40, 1_000, 131_072),
            (65_536, u32::MAX, MAX_FREQUENCY, 131_072),
            (0x7000_0000, 8, 1, 0x7FFF_FFFF),
        ] {
            let found = after_overflow(interval, number, frequency);
            assert_eq!(found, wanted, "overflow {number} of {interval} events, {frequency} Hz");
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
