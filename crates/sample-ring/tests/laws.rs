//! Properties of a ring and a slot in one thread, and a stress test with two threads.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use proptest::prelude::*;
use sample_ring::{Armed, Memory, Pushed, Slot, channel, channel_in};

/// Miri is slow.
const STEPS: usize = if cfg!(miri) { 30 } else { 400 };

#[derive(Debug, Clone)]
enum Step {
    Push,
    Drain(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![3 => Just(Step::Push), 2 => (0..12_usize).prop_map(Step::Drain)]
}

proptest! {
    #[test]
    fn ring_behaves_like_a_bounded_queue(
        power in 0..5_u32,
        steps in prop::collection::vec(step(), 0..STEPS),
    ) {
        let capacity = 1_usize << power;
        let (mut producer, mut consumer) = channel(capacity, ()).unwrap();
        let mut queue = VecDeque::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push => match producer.push(number) {
                    Pushed::Full => prop_assert_eq!(queue.len(), capacity),
                    Pushed::Stored { watermark_hit } => {
                        queue.push_back(number);
                        prop_assert_eq!(watermark_hit, queue.len() == (capacity / 2).max(1));
                    }
                },
                Step::Drain(max) => {
                    let mut seen = Vec::new();
                    let (mut calls, wanted) = (0, queue.len().min(max));
                    let count = consumer.drain(max, |items| {
                        calls += 1;
                        seen.extend_from_slice(items);
                    });
                    prop_assert_eq!((count, seen), (wanted, queue.drain(..wanted).collect::<Vec<_>>()));
                    prop_assert!(calls <= 2);
                }
            }
            prop_assert_eq!((consumer.len(), consumer.is_empty()), (queue.len(), queue.is_empty()));
            prop_assert_eq!(consumer.is_half_full(), queue.len() >= (capacity / 2).max(1));
        }
    }
}

#[test]
fn ring_that_is_always_drained_never_reaches_half() {
    let (mut producer, mut consumer) = channel(64, ()).unwrap();
    for number in 0..640 {
        assert_eq!(producer.push(number), Pushed::Stored { watermark_hit: false });
        consumer.drain(1, |_| ());
    }
}

#[test]
fn channel_returns_none_for_bad_capacity_or_short_memory() {
    for capacity in [0, 3, 5, 100, usize::MAX] {
        assert!(channel::<u64, ()>(capacity, ()).is_none(), "{capacity}");
    }
    assert!(channel::<[u64; 5], ()>(1 << 62, ()).is_none());
    // Miri aborts when an allocation fails.
    assert!(cfg!(miri) || channel::<[u64; 5], ()>(1 << 56, ()).is_none());
}

/// Counts its drops.
struct DropCounter(Arc<AtomicUsize>);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn side_is_shared_by_both_ends_and_dropped_with_the_last() {
    for first in [true, false] {
        let drops = Arc::new(AtomicUsize::new(0));
        let (producer, consumer) = channel::<u8, _>(4, DropCounter(drops.clone())).unwrap();
        assert!(std::ptr::eq(producer.side(), consumer.side()));
        if first {
            drop(producer);
            assert_eq!(drops.load(Ordering::Relaxed), 0);
            drop(consumer);
        } else {
            drop(consumer);
            assert_eq!(drops.load(Ordering::Relaxed), 0);
            drop(producer);
        }
        assert_eq!(drops.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn items_stay_in_the_ring_if_the_visitor_panics() {
    let (mut producer, mut consumer) = channel(4, ()).unwrap();
    producer.push(1);
    producer.push(2);
    let outcome = catch_unwind(AssertUnwindSafe(|| consumer.drain(2, |_| panic!("in the middle"))));
    assert!(outcome.is_err());
    let mut items = Vec::new();
    consumer.drain(3, |part| items.extend_from_slice(part));
    assert_eq!(items, [1, 2]);
}

#[test]
fn concurrent_push_and_drain_keep_order_and_report_every_loss() {
    const ITEMS: u64 = if cfg!(miri) { 300 } else { 2_000_000 };
    let (mut producer, mut consumer) = channel(16, ()).unwrap();
    let writer = thread::spawn(move || {
        let mut lost = 0;
        for number in 0..ITEMS {
            lost += u64::from(producer.push([number, !number]) == Pushed::Full);
        }
        lost
    });
    let (mut seen, mut next) = (0, 0);
    let mut fetch = || {
        consumer.drain(usize::MAX, |items| {
            for [number, inverse] in items {
                assert_eq!(*number, !*inverse, "torn");
                assert!(*number >= next, "order");
                next = number + 1;
                seen += 1;
            }
        })
    };
    while !writer.is_finished() {
        fetch();
    }
    // `is_finished` does not synchronize with the thread, `join` does.
    let lost = writer.join().unwrap();
    fetch();
    assert_eq!(seen + lost, ITEMS);
}

#[test]
fn slot_holds_one_value_and_returns_it_once() {
    let slot = Slot::empty();
    assert_eq!((slot.try_take(), slot.try_with(|value: &mut u32| *value)), (None, None));
    assert_eq!(slot.try_put(1), Ok(()));
    assert_eq!(slot.try_put(2), Err(2));
    assert_eq!(slot.try_with(|value| std::mem::replace(value, 3)), Some(1));
    assert_eq!((slot.try_take(), slot.try_take()), (Some(3), None));
}

#[test]
fn slot_in_use_rejects_every_other_access() {
    let slot = Slot::empty();
    slot.try_put(1).unwrap();
    let inside = slot.try_with(|_| (slot.try_take(), slot.try_with(|value| *value), slot.try_put(2)));
    assert_eq!(inside, Some((None, None, Err(2))));
    assert_eq!(slot.try_take(), Some(1));
}

#[test]
fn slot_keeps_its_value_if_the_user_panics() {
    let slot = Slot::empty();
    slot.try_put(7).unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| slot.try_with(|_| panic!("in the middle"))));
    assert!(outcome.is_err());
    assert_eq!(slot.try_take(), Some(7));
}

#[test]
fn slot_drops_its_value() {
    let drops = Arc::new(AtomicUsize::new(0));
    let slot = Slot::empty();
    assert!(slot.try_put(DropCounter(drops.clone())).is_ok());
    drop(slot.try_take());
    assert!(slot.try_put(DropCounter(drops.clone())).is_ok());
    drop(slot);
    assert_eq!(drops.load(Ordering::Relaxed), 2);
}

#[test]
fn a_ring_refuses_memory_that_is_too_small_for_it() {
    let bytes = sample_ring::bytes::<u64>(4).unwrap();
    assert_eq!(bytes, 32);
    let ring = |bytes| channel_in::<u64, ()>(Memory::allocate(bytes).unwrap(), 4, || ());
    assert!(ring(bytes - 1).is_none());
    let (mut producer, mut consumer) = ring(bytes).unwrap();
    assert!((0..4).all(|item| producer.push(item) != Pushed::Full) && producer.push(4) == Pushed::Full);
    consumer.drain(4, |items| assert_eq!(items, [0, 1, 2, 3]));
    assert!(Memory::allocate(0).is_none());
    assert!(channel::<u64, ()>(0, ()).is_none() && channel::<u64, ()>(3, ()).is_none());
}

#[test]
#[expect(unsafe_code, reason = "memory comes with a function that frees it")]
fn the_memory_of_a_ring_is_freed_once_and_with_its_size_after_both_ends_are_gone() {
    static FREED: AtomicUsize = AtomicUsize::new(0);
    static BLOCK: [AtomicU64; 9] = [const { AtomicU64::new(0) }; 9];
    /// Adds up the sizes of what is freed.
    unsafe fn free(start: NonNull<u8>, bytes: usize) {
        assert!(start.addr().get() - BLOCK.as_ptr().addr() < 16, "another block");
        FREED.fetch_add(bytes, Ordering::Relaxed);
    }
    let first = BLOCK.as_ptr().cast_mut().cast::<u8>();
    let start = NonNull::new(first.wrapping_add(first.align_offset(Memory::ALIGNMENT))).unwrap();
    let freed = || FREED.load(Ordering::Relaxed);

    // SAFETY: the block is aligned, has room for 64 bytes after it, and only this test uses it
    let memory = unsafe { Memory::new(start, 64, free) };
    let (producer, consumer) = channel_in::<u64, ()>(memory, 8, || ()).unwrap();
    drop(producer);
    assert_eq!(freed(), 0);
    drop(consumer);
    assert_eq!(freed(), 64);
    // SAFETY: as before; the ring gave the block back
    let memory = unsafe { Memory::new(start, 64, free) };
    assert!(channel_in::<u64, ()>(memory, 16, || ()).is_none(), "too small");
    assert_eq!(freed(), 128);
}

#[test]
fn a_consumer_is_armed_exactly_while_it_waits() {
    let armed = Armed::new();
    assert!(!armed.is_armed());
    for waits in [true, true, false, true, false, false] {
        armed.arm(waits);
        assert_eq!(armed.is_armed(), waits);
    }
}

#[test]
fn debug_output_shows_the_counts_of_a_ring_and_not_the_value_of_a_slot() {
    let (mut producer, mut consumer) = channel(4, ()).unwrap();
    producer.push(70);
    producer.push(80);
    consumer.drain(1, |_| ());
    assert_eq!(format!("{producer:?}"), "Producer { head: 2, .. }");
    assert_eq!(format!("{consumer:?}"), "Consumer { tail: 1, .. }");
    assert_eq!(format!("{:?}", Slot::<u8>::empty()), "Slot { .. }");
}
