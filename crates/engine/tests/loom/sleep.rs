//! The account of sleeps.

use engine::{SuspendTime, Ticks};
use loom::sync::Arc;
use loom::thread;

use crate::explore;

/// Law: while the machine falls asleep and wakes, a request sees a time asleep between what it was before and what it
/// is afterwards: never more than the machine has slept, and never less than before.
#[test]
fn time_asleep_that_a_request_reads_during_a_sleep_is_between_before_and_after() {
    explore(3, || {
        let sleeps = Arc::new(SuspendTime::default());
        sleeps.begin(Ticks(100));
        sleeps.end(Ticks(110));
        let power = {
            let sleeps = sleeps.clone();
            thread::spawn(move || {
                sleeps.begin(Ticks(500));
                sleeps.end(Ticks(520));
            })
        };
        // The request reads the clock at 520 at the latest: 10 ticks before this sleep, and at most 20 in it.
        let first = sleeps.asleep(Ticks(520)).0;
        let second = sleeps.asleep(Ticks(520)).0;
        power.join().unwrap();
        assert!((10..=30).contains(&first), "{first} of 10 to 30");
        assert!((10..=30).contains(&second), "{second} of 10 to 30");
        assert!(second == first || first == 10 || second == 30, "{first}, then {second}");
        assert!(second >= first, "the time asleep went back from {first} to {second}");
        assert_eq!(sleeps.asleep(Ticks(600)).0, 30);
    });
}
