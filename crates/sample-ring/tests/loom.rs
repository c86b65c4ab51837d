//! Loom runs every interleaving of two or three threads: `RUSTFLAGS="--cfg loom" cargo test -p sample-ring --release
//! --test loom`.
//!
//! Where the state is too large, a test bounds the preemptions of an execution ([`bounded`]). `LOOM_MAX_PREEMPTIONS`
//! bounds those of all tests.

#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "tests")]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::thread;
use sample_ring::{Armed, Consumer, Pushed, Slot, channel};

/// Runs `law` in every interleaving with at most so many preemptions, unless the environment says how many.
fn bounded(preemptions: usize, law: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.check(law);
}

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

/// Returns the items that were drained, in order, and those that were refused.
fn all_of(seen: Vec<usize>, lost: Vec<usize>) -> Vec<usize> {
    assert!(seen.is_sorted(), "{seen:?}");
    let mut all = [seen, lost].concat();
    all.sort_unstable();
    all
}

/// Law: of several rings with several slots each, every item is drained from its ring or reported as lost, in its
/// ring's order, while one consumer drains them in turn, in parts smaller than a ring. The cells are used by one end at
/// a time.
#[test]
fn every_item_of_two_processors_is_drained_or_lost() {
    bounded(2, || {
        const ITEMS: usize = 3;
        let start = |first: usize| {
            let (mut producer, consumer) = channel::<usize, ()>(2, ()).unwrap();
            let writer = thread::spawn(move || {
                (first..first + ITEMS).filter(|item| producer.push(*item) == Pushed::Full).collect::<Vec<_>>()
            });
            (writer, consumer, Vec::new())
        };
        let mut rings = [start(0), start(10)];
        for (_, consumer, seen) in &mut rings {
            consumer.drain(1, |items| seen.extend_from_slice(items));
        }
        for ((writer, mut consumer, mut seen), first) in rings.into_iter().zip([0, 10]) {
            let lost = writer.join().unwrap();
            while consumer.drain(1, |items| seen.extend_from_slice(items)) > 0 {}
            assert_eq!(all_of(seen, lost), (first..first + ITEMS).collect::<Vec<_>>());
        }
    });
}

/// Law: a full ring loses new items and never old ones, and its account in `side` is exact: pushed = drained + left +
/// lost. What the consumer has drained was pushed before, whatever the account says at that moment.
#[test]
fn account_of_an_overflow_is_exact_when_the_producer_has_ended() {
    for capacity in [1, 2, 4] {
        bounded(3, move || {
            const ITEMS: usize = 5;
            let counts = [AtomicUsize::new(0), AtomicUsize::new(0)];
            let (mut producer, mut consumer) = channel(capacity, counts).unwrap();
            let writer = thread::spawn(move || {
                for item in 0..ITEMS {
                    let pushed = producer.push(item);
                    let [stored, lost] = producer.side();
                    let count = if pushed == Pushed::Full { lost } else { stored };
                    // One writer, as the statistics of the engine.
                    count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
            });
            let mut seen = Vec::new();
            consumer.drain(2, |items| seen.extend_from_slice(items));
            let before = seen.len();
            writer.join().unwrap();
            let [stored, lost] = consumer.side().each_ref().map(|count| count.load(Ordering::Relaxed));
            assert_eq!(stored + lost, ITEMS);
            assert_eq!(stored, before + consumer.len());
            assert!(lost <= ITEMS - capacity, "an item was lost although there was room");
            consumer.drain(ITEMS, |items| seen.extend_from_slice(items));
            assert!(seen.is_sorted());
            assert!(seen.iter().take(capacity).copied().eq(0..capacity), "an old item was lost: {seen:?}");
        });
    }
}

/// Law: a consumer that arms, finds less than half, and looks again each time that it is woken, is awake or was woken
/// when half of the ring is in use; also if it disarms between two pushes. It never sleeps through the last push.
#[test]
fn consumer_that_arms_again_after_each_wake_sees_the_last_push() {
    for (capacity, pushes) in [(2, 2), (2, 3), (4, 4)] {
        bounded(3, move || {
            let (mut producer, mut consumer) = channel::<usize, ()>(capacity, ()).unwrap();
            let shared = Arc::new((Armed::new(), AtomicBool::new(false)));
            let writer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (armed, woken) = &*shared;
                    for item in 0..pushes {
                        if producer.push(item) == (Pushed::Stored { watermark_hit: true }) && armed.is_armed() {
                            woken.store(true, Ordering::Release);
                        }
                    }
                })
            };
            let (armed, woken) = &*shared;
            // The first request finds nothing and waits, or is served and is gone.
            armed.arm(true);
            if consumer.is_half_full() {
                armed.arm(false);
                consumer.drain(1, |_| ());
                armed.arm(true);
            }
            let sleeps = !consumer.is_half_full();
            writer.join().unwrap();
            assert!(!sleeps || !consumer.is_half_full() || woken.load(Ordering::Acquire), "sleeps while half full");
        });
    }
}

/// Law: either end can be dropped while the other one is used. A push into a ring without a reader succeeds until it
/// is full, the items are freed once, and the value that both ends share sees the writes of both.
#[test]
fn ring_closed_during_a_push_is_freed_once_by_the_last_end() {
    for read_first in [false, true] {
        bounded(3, move || {
            let sum_at_drop = Arc::new(AtomicUsize::new(0));
            let side = Side { counts: [AtomicUsize::new(0), AtomicUsize::new(0)], sum_at_drop: sum_at_drop.clone() };
            let (mut producer, mut consumer) = channel(2, side).unwrap();
            let writer = thread::spawn(move || {
                let stored = (0..3).filter(|item| producer.push(*item) != Pushed::Full).count();
                producer.side().counts[0].store(stored, Ordering::Relaxed);
                assert!(stored >= 2, "the ring has room for two items");
                stored
            });
            if read_first {
                consumer.drain(2, |items| assert!(items.iter().all(|item| *item < 3)));
            }
            consumer.side().counts[1].store(8, Ordering::Relaxed);
            drop(consumer);
            let stored = writer.join().unwrap();
            assert_eq!(sum_at_drop.load(Ordering::Relaxed), stored + 8);
        });
    }
}

/// Law: a producer that is withdrawn from its slot between two interrupts, or during one, has every item that was
/// pushed, and no interrupt pushes afterwards: an interrupt uses it completely or not at all.
#[test]
fn producer_withdrawn_between_interrupts_has_what_they_pushed() {
    bounded(3, || {
        let (producer, mut consumer) = channel::<usize, ()>(4, ()).unwrap();
        let slot = Arc::new(Slot::empty());
        assert!(slot.try_put(producer).is_ok());
        let interrupts = {
            let slot = slot.clone();
            thread::spawn(move || {
                let push = |item| slot.try_with(|producer| producer.push(item)).is_some();
                (0..2).filter(|item| push(*item)).count()
            })
        };
        // The slot is in use for the moment of a push: the end of a session comes on the same processor, so that it
        // finds the slot free. Here it tries until it does.
        let withdrawn = loop {
            match slot.try_take() {
                Some(producer) => break producer,
                None => thread::yield_now(),
            }
        };
        let mut seen = Vec::new();
        consumer.drain(4, |items| seen.extend_from_slice(items));
        let pushed = interrupts.join().unwrap();
        assert_eq!(seen.len(), pushed, "{seen:?}");
        assert!(consumer.is_empty());
        drop(withdrawn);
    });
}
