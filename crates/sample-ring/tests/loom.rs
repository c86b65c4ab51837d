//! Loom runs every interleaving of two threads: `RUSTFLAGS="--cfg loom" cargo test -p sample-ring --release --test
//! loom`.

#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "tests")]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use sample_ring::{Armed, Consumer, Pushed, Slot, channel};

#[test]
fn wrapping_ring_keeps_order_and_reports_every_loss() {
    loom::model(|| {
        const ITEMS: usize = 5;
        let (mut producer, mut consumer) = channel::<usize, ()>(2, ()).unwrap();
        let writer = thread::spawn(move || {
            (0..ITEMS).filter(|number| producer.push(*number) == Pushed::Full).collect::<Vec<_>>()
        });
        let mut seen = Vec::new();
        for _ in 0..3 {
            consumer.drain(2, |items| seen.extend_from_slice(items));
        }
        let lost = writer.join().unwrap();
        consumer.drain(2, |items| seen.extend_from_slice(items));
        assert!(consumer.is_empty());
        assert!(seen.is_sorted());
        let mut all = [seen, lost].concat();
        all.sort_unstable();
        assert_eq!(all, (0..ITEMS).collect::<Vec<_>>());
    });
}

/// Runs a producer and a consumer concurrently for several combinations of capacity, initial items, pushes and pops.
/// `decide` gets the consumer, the number of popped items and the wake flag. When all pushes are done, `check` gets the
/// result of `decide`.
fn race<A>(
    decide: impl Fn(&mut Consumer<usize, ()>, usize, &AtomicBool) -> A + Copy + Send + Sync + 'static,
    check: impl Fn(&Consumer<usize, ()>, A, bool) + Copy + Send + Sync + 'static,
) {
    for (capacity, before, meanwhile, fetches) in
        [(1, 0, 2, 1), (2, 0, 3, 1), (2, 1, 1, 1), (2, 2, 2, 2), (4, 2, 2, 1), (4, 3, 2, 2)]
    {
        loom::model(move || {
            let (mut producer, mut consumer) = channel(capacity, ()).unwrap();
            let woken = Arc::new(AtomicBool::new(false));
            for number in 0..before {
                producer.push(number);
            }
            let writer = {
                let woken = woken.clone();
                thread::spawn(move || {
                    for number in 0..meanwhile {
                        if producer.push(number) == (Pushed::Stored { watermark_hit: true }) {
                            woken.store(true, Ordering::Release);
                        }
                    }
                })
            };
            let fetched = (0..fetches).map(|_| consumer.drain(1, |_| ())).sum();
            let decision = decide(&mut consumer, fetched, &woken);
            writer.join().unwrap();
            check(&consumer, decision, woken.load(Ordering::Acquire));
        });
    }
}

#[test]
fn consumer_below_half_is_woken_when_half_is_reached() {
    race(
        |consumer, _, _| !consumer.is_half_full(),
        |consumer, sleeps, woken| assert!(!sleeps || woken || !consumer.is_half_full(), "sleeps while half full"),
    );
}

#[test]
fn woken_consumer_finds_half_unless_it_has_popped() {
    race(
        |consumer, fetched, woken| {
            assert!(!woken.load(Ordering::Acquire) || fetched > 0 || consumer.is_half_full());
        },
        |_, (), _| (),
    );
}

/// Adds the sum of its two counts to `sum_at_drop` when it is dropped.
struct Side {
    counts: [AtomicUsize; 2],
    sum_at_drop: Arc<AtomicUsize>,
}

impl Drop for Side {
    fn drop(&mut self) {
        let sum = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        self.sum_at_drop.fetch_add(sum, Ordering::Relaxed);
    }
}

#[test]
fn side_is_dropped_once_with_the_writes_of_both_ends() {
    loom::model(|| {
        let sum_at_drop = Arc::new(AtomicUsize::new(0));
        let side = Side { counts: [AtomicUsize::new(0), AtomicUsize::new(0)], sum_at_drop: sum_at_drop.clone() };
        let (mut producer, mut consumer) = channel(2, side).unwrap();
        let other = thread::spawn(move || {
            producer.push(0);
            producer.side().counts[0].store(1, Ordering::Relaxed);
        });
        consumer.drain(1, |_| ());
        consumer.side().counts[1].store(2, Ordering::Relaxed);
        drop(consumer);
        other.join().unwrap();
        assert_eq!(sum_at_drop.load(Ordering::Relaxed), 3);
    });
}

/// Runs `there` and `here` concurrently on a slot that holds `first`. Returns the slot and both results.
fn concurrently<A: Send + 'static, B>(
    first: Option<usize>,
    there: impl FnOnce(&Slot<usize>) -> A + Send + 'static,
    here: impl FnOnce(&Slot<usize>) -> B,
) -> (Arc<Slot<usize>>, A, B) {
    let slot = Arc::new(Slot::empty());
    if let Some(value) = first {
        slot.try_put(value).unwrap();
    }
    let other = {
        let slot = slot.clone();
        thread::spawn(move || there(&slot))
    };
    let here = here(&slot);
    (slot, other.join().unwrap(), here)
}

/// Increments the value and returns the previous one.
fn add(slot: &Slot<usize>) -> Option<usize> {
    slot.try_with(|value| {
        *value += 1;
        *value - 1
    })
}

#[test]
fn value_is_used_by_one_thread_at_a_time() {
    loom::model(|| {
        let (slot, there, here) = concurrently(Some(0), add, add);
        let used = usize::from(there.is_some()) + usize::from(here.is_some());
        assert!(used >= 1);
        assert_eq!(slot.try_take(), Some(used));
    });
}

#[test]
fn value_is_taken_before_or_after_its_use_or_stays() {
    loom::model(|| {
        let (slot, used, taken) = concurrently(Some(5), add, Slot::try_take);
        let left = slot.try_take();
        match (used, taken) {
            (None, Some(5)) | (Some(5), Some(6)) => assert_eq!(left, None),
            (Some(5), None) => assert_eq!(left, Some(6)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn value_is_used_completely_stored_or_not_at_all() {
    loom::model(|| {
        let (slot, used, put) = concurrently(None, add, |slot| slot.try_put(5));
        assert_eq!(put, Ok(()));
        match used {
            Some(5) => assert_eq!(slot.try_take(), Some(6)),
            None => assert_eq!(slot.try_take(), Some(5)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn one_of_two_concurrent_puts_or_takes_succeeds() {
    loom::model(|| {
        let (slot, there, here) = concurrently(None, |slot| slot.try_put(1), |slot| slot.try_put(2));
        let stays = slot.try_take().unwrap();
        assert_eq!([there, here], if stays == 1 { [Ok(()), Err(2)] } else { [Err(1), Ok(())] });
    });
    loom::model(|| {
        let (slot, there, here) = concurrently(Some(3), Slot::try_take, Slot::try_take);
        assert!([(Some(3), None), (None, Some(3))].contains(&(there, here)));
        assert_eq!(slot.try_take(), None);
    });
}

#[test]
fn put_during_take_succeeds_or_returns_the_value() {
    loom::model(|| {
        let (slot, put, taken) = concurrently(Some(1), |slot| slot.try_put(2), Slot::try_take);
        assert_eq!(taken, Some(1));
        assert_eq!(slot.try_take(), if put.is_ok() { Some(2) } else { None });
    });
}

#[test]
fn consumer_that_arms_and_finds_less_than_half_is_woken() {
    for (capacity, before) in [(1, 0), (2, 0), (4, 1)] {
        loom::model(move || {
            let (mut producer, consumer) = channel::<usize, ()>(capacity, ()).unwrap();
            for number in 0..before {
                producer.push(number);
            }
            let shared = Arc::new((Armed::new(), AtomicBool::new(false)));
            let writer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (armed, woken) = &*shared;
                    for number in 0..2 {
                        if producer.push(number) == (Pushed::Stored { watermark_hit: true }) && armed.is_armed() {
                            woken.store(true, Ordering::Release);
                        }
                    }
                })
            };
            let (armed, woken) = &*shared;
            armed.arm(true);
            let sleeps = !consumer.is_half_full();
            writer.join().unwrap();
            assert!(!sleeps || !consumer.is_half_full() || woken.load(Ordering::Acquire));
        });
    }
}
