//! Every order of what two threads do, by loom: `RUSTFLAGS="--cfg loom" cargo test -p ring --release --test loom`.

#![cfg(loom)]

use loom::sync::Arc;
use loom::thread;
use ring::{Pushed, Slot, channel};

/// What loom keeps of an item in a cell is not `Copy`; its number is.
#[test]
fn over_the_wrap_nothing_is_lost_unsaid_nothing_comes_twice_and_the_order_stays() {
    loom::model(|| {
        const ITEMS: usize = 4;
        let (mut producer, mut consumer) = channel::<usize, ()>(2, ()).unwrap();
        let writer = thread::spawn(move || {
            (0..ITEMS).filter(|number| producer.push(*number) == Pushed::Full).collect::<Vec<_>>()
        });
        let mut seen = Vec::new();
        for _ in 0..2 {
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

#[test]
fn who_fills_half_wakes_and_who_is_woken_finds_it() {
    loom::model(|| {
        let (mut producer, mut consumer) = channel::<usize, ()>(2, ()).unwrap();
        let writer = thread::spawn(move || {
            (0..3).filter(|number| producer.push(*number) == Pushed::Stored { reached: true }).count()
        });
        let early = consumer.drain(1, |_| ());
        let woken = writer.join().unwrap();
        // With nothing fetched meanwhile, the half was reached once.
        assert!(woken >= 1);
        assert!(early == 1 || consumer.is_half_full());
    });
}

#[test]
fn both_ends_can_go_at_once() {
    loom::model(|| {
        let side = Arc::new(());
        let (producer, consumer) = channel::<usize, _>(2, side.clone()).unwrap();
        let other = thread::spawn(move || drop(producer));
        drop(consumer);
        other.join().unwrap();
        assert_eq!(Arc::strong_count(&side), 1);
    });
}

#[test]
fn a_slot_is_used_by_one_at_a_time() {
    loom::model(|| {
        let slot = Arc::new(Slot::empty());
        slot.put(0).unwrap();
        let other = {
            let slot = slot.clone();
            thread::spawn(move || slot.with(|value: &mut usize| *value += 1).is_some())
        };
        let here = slot.with(|value| *value += 1).is_some();
        let there = other.join().unwrap();
        assert_eq!(slot.take(), Some(usize::from(here) + usize::from(there)));
        assert!(here || there);
    });
}

#[test]
fn a_value_is_taken_once_and_put_back_whole() {
    loom::model(|| {
        let slot = Arc::new(Slot::empty());
        slot.put(5).unwrap();
        let other = {
            let slot = slot.clone();
            thread::spawn(move || slot.with(|value: &mut usize| *value += 1).is_some())
        };
        let taken = slot.take();
        let used = other.join().unwrap();
        match taken {
            Some(value) => assert_eq!(value, 5 + usize::from(used)),
            None => assert!(used && slot.take() == Some(6)),
        }
    });
}
