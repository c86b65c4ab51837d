//! What was counted between two readings of a session.

use std::collections::HashMap;

use protocol::CountRecord;

use super::numbers::whole;

/// Returns the counts since `before`, the previous reading of the same session. A processor that was added meanwhile
/// has no count there: its count is since its start.
#[must_use]
pub fn difference(now: &[CountRecord], before: &[CountRecord]) -> Vec<CountRecord> {
    let key = |record: &CountRecord| (record.session, record.index, record.event.source, record.processor);
    let before: HashMap<_, _> = before.iter().map(|record| (key(record), record)).collect();
    let since = |record: &CountRecord| match before.get(&key(record)) {
        Some(earlier) => one(record, earlier),
        None => *record,
    };
    now.iter().map(since).collect()
}

fn one(now: &CountRecord, before: &CountRecord) -> CountRecord {
    CountRecord {
        count: now.count.saturating_sub(before.count),
        enabled: now.enabled.saturating_sub(before.enabled),
        asleep: now.asleep.saturating_sub(before.asleep),
        running: now.running.saturating_sub(before.running),
        samples: now.samples.saturating_sub(before.samples),
        lost: now.lost.saturating_sub(before.lost),
        throttled: now.throttled.saturating_sub(before.throttled),
        unmet: now.unmet.saturating_sub(before.unmet),
        turns: now.turns.saturating_sub(before.turns),
        squares: wide(now.squares, before.squares),
        products: wide(now.products, before.products),
        durations: wide(now.durations, before.durations),
        ..*now
    }
}

/// Returns the difference of two numbers of 128 bits.
fn wide(now: [u64; 2], before: [u64; 2]) -> [u64; 2] {
    zerocopy::transmute!(whole(now).saturating_sub(whole(before)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::count;

    #[test]
    fn every_sum_is_a_difference_and_the_rest_is_of_the_later_reading() {
        let before = CountRecord {
            asleep: 1,
            turns: 2,
            squares: [u64::MAX, 0],
            products: [5, 1],
            durations: [3, 0],
            ..count(0, 100, 1_000)
        };
        let now = CountRecord {
            asleep: 4,
            turns: 7,
            running: 1_500,
            squares: [1, 1],
            products: [4, 2],
            durations: [10, 0],
            counter: 3,
            ..count(0, 250, 3_000)
        };
        let [found] = difference(&[now], &[before])[..] else { panic!() };
        assert_eq!((found.count, found.enabled, found.asleep, found.running, found.turns), (150, 2_000, 3, 500, 5));
        assert_eq!((found.squares, found.products, found.durations), ([2, 0], [u64::MAX, 0], [7, 0]));
        assert_eq!(found.counter, 3);
    }

    #[test]
    fn a_processor_that_was_added_counts_from_its_start() {
        let found = difference(&[count(0, 10, 20), count(1, 7, 8)], &[count(0, 4, 5)]);
        assert_eq!(found.iter().map(|record| (record.count, record.enabled)).collect::<Vec<_>>(), [(6, 15), (7, 8)]);
    }
}
