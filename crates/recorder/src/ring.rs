//! The capacity of the rings where the user does not choose it.

use pmu::Source;
use protocol::{EventRequest, MAX_RING_BYTES, RING, SampleRecord, modes};

use crate::sampled_event::TIME_UNITS;

/// Seconds of expected samples that a ring has room for. The client fetches ten times a second or more, so that it may
/// fall behind for almost that long.
const SECONDS: u64 = 2;

/// Fewest and most records, whatever is expected.
const BOUNDS: (u64, u64) = (1_024, 1 << 16);

/// Records for an event with an interval of its own: how often it occurs is unknown.
const UNKNOWN: u64 = 8_192;

/// The rings of a session take a quarter of the memory for rings at most, so that other sessions find some.
const MOST_BYTES: u64 = MAX_RING_BYTES / 4;

/// Last branches of a sample at most: processors keep up to so many (SDM Vol. 3B, 18.4).
const MOST_BRANCHES: u64 = 32;

/// Returns how many records a sample of an event has at most: itself, with its access if it is precise, otherwise with
/// its last branches.
const fn records_per_sample(event: &EventRequest, last_branches: u32) -> u64 {
    match (event.modes & modes::PRECISE, last_branches) {
        (0, 0) => 1,
        (0, _) => 1 + MOST_BRANCHES,
        _ => 2,
    }
}

/// Returns the capacity of the ring of each of `processors` processors in records, for a session with these bits of
/// [`last_branches`](protocol::last_branches): from the rate of the samples that is expected and from the number of
/// records that each has.
#[must_use]
pub fn capacity(events: &[EventRequest], last_branches: u32, processors: u32) -> u32 {
    let expected: u64 = events.iter().map(|event| expected(event) * records_per_sample(event, last_branches)).sum();
    let (least, most) = BOUNDS;
    let affordable = MOST_BYTES / (size_of::<SampleRecord>() as u64 * u64::from(processors.max(1)));
    let records = expected.clamp(least, most).next_power_of_two().min(previous_power_of_two(affordable));
    u32::try_from(records).map_or(*RING.end(), |records| records.clamp(*RING.start(), *RING.end()))
}

/// Returns how many samples per second are expected on each processor.
#[must_use]
pub fn samples_per_second(events: &[EventRequest]) -> u64 {
    events.iter().map(expected).sum::<u64>() / SECONDS
}

/// Returns how many samples of an event are expected of each processor in two seconds.
fn expected(event: &EventRequest) -> u64 {
    match (event.frequency, event.event.source == Source::TIME.0) {
        (0, true) => SECONDS * u64::from(TIME_UNITS) / u64::from(event.interval.max(1)),
        (0, false) => UNKNOWN,
        (frequency, _) => SECONDS * u64::from(frequency),
    }
}

const fn previous_power_of_two(number: u64) -> u64 {
    if number.is_power_of_two() { number } else { number.next_power_of_two() / 2 }
}

#[cfg(test)]
mod tests {
    use protocol::{Event, last_branches};

    use super::*;

    fn event(frequency: u32, interval: u32) -> EventRequest {
        EventRequest { event: Event::of(2), frequency, interval, ..EventRequest::EMPTY }
    }

    #[test]
    fn a_ring_has_room_for_two_seconds_within_bounds() {
        let time = EventRequest { event: Event::TIME, ..event(0, 10_000) };
        for (events, processors, records) in [
            (vec![event(1_000, 65_536)], 8, 2_048),
            (vec![event(1_000, 65_536); 3], 8, 8_192),
            (vec![event(10, 65_536)], 8, 1_024),
            (vec![event(10_000, 65_536)], 256, 16_384),
            (vec![event(100_000, 65_536)], 8, 65_536),
            (vec![event(0, 65_536)], 8, 8_192),
            (vec![event(0, 65_536), event(1_000, 65_536)], 8, 16_384),
            (vec![time], 8, 2_048),
            (vec![event(10_000, 65_536)], 2_048, 2_048),
            (vec![event(1_000, 65_536)], 0, 2_048),
        ] {
            assert_eq!(capacity(&events, 0, processors), records, "{events:?} on {processors}");
        }
    }

    #[test]
    fn a_ring_has_room_for_the_last_branches_of_its_samples() {
        for (frequency, processors, records) in
            [(10, 8, 1_024), (500, 8, 65_536), (10_000, 8, 65_536), (500, 512, 8_192)]
        {
            let found = capacity(&[event(frequency, 1)], last_branches::USER | last_branches::ANY, processors);
            assert_eq!(found, records, "{frequency} on {processors}");
        }
    }

    #[test]
    fn a_ring_has_room_for_the_access_of_each_precise_sample() {
        let precise = EventRequest { modes: modes::BOTH | modes::PRECISE, ..event(1_000, 65_536) };
        for last_branches in [0, last_branches::USER | last_branches::ANY] {
            assert_eq!(capacity(&[precise], last_branches, 8), 4_096);
        }
        assert_eq!(capacity(&[precise, event(1_000, 65_536), event(1_000, 65_536)], 0, 8), 8_192);
    }

    #[test]
    fn four_sessions_with_rings_of_this_size_fit_on_every_machine() {
        for processors in 1..=2_048 {
            let records = capacity(&[event(100_000, 1)], last_branches::ANY, processors);
            assert!(RING.contains(&records) && records.is_power_of_two());
            let bytes = u64::from(records) * size_of::<SampleRecord>() as u64 * u64::from(processors);
            assert!(4 * bytes <= MAX_RING_BYTES, "{processors}");
        }
    }
}
