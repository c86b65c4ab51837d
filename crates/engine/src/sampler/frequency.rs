//! Adaptation of an interval to a frequency: a constant number of samples per second at any rate of events.

use pmu::interval::IntervalRange;

use crate::time::Ticks;

/// How many times too frequent samples are before an overflow changes the interval.
const TOO_OFTEN: u64 = 4;

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

/// Returns a longer interval after an overflow that came too early: `interval` events in the time `elapsed`. `None` if
/// samples are not much too frequent, or if no time has passed.
///
/// Ticks alone would be too slow. When an idle processor becomes busy, its short interval can cost hundreds of
/// interrupts before the next tick. Below [`TOO_OFTEN`] the average of a tick decides, because two overflows in a row
/// say little of events that come in bursts.
///
/// # References
/// Linux, `kernel/events/core.c`, `__perf_event_overflow`, which adjusts the period as well.
#[inline]
pub fn after_overflow(interval: u32, elapsed: Ticks, clock: u64, frequency: u32) -> Option<u32> {
    let parts = elapsed.0.saturating_mul(frequency.into());
    if parts >= clock / TOO_OFTEN {
        return None;
    }
    let wanted = u64::from(interval).saturating_mul(clock).checked_div(parts)?;
    Some(IntervalRange::COUNTER.clamp(u32::try_from(wanted).unwrap_or(u32::MAX)))
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
    fn an_overflow_lengthens_the_interval_only_if_it_came_much_too_early() {
        for (interval, elapsed, frequency, wanted) in [
            // 65,536 events in 16 microseconds are 83.6 million in the time of a sample.
            (65_536, 160, 49, Some(83_591_836)),
            (65_536, CLOCK / 4 / 50 - 1, 50, Some(262_149)),
            (65_536, CLOCK / 4 / 50, 50, None),
            (65_536, 1_000_000, 1_000, None),
            (65_536, u64::MAX, 1_000, None),
            (65_536, 1, 1, Some(0x7FFF_FFFF)),
            (65_536, 0, 1_000, None),
        ] {
            let found = after_overflow(interval, Ticks(elapsed), CLOCK, frequency);
            assert_eq!(found, wanted, "{interval} events in {elapsed} units, {frequency} Hz");
        }
        assert_eq!(after_overflow(0x7FFF_FFFF, Ticks(1), u64::MAX, 1), Some(0x7FFF_FFFF));
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
