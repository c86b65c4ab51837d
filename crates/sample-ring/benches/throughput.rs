//! Throughput of the ring compared with crossbeam's ArrayQueue, with items of 40 bytes.

#![expect(clippy::unwrap_used, reason = "a benchmark whose setup fails must not measure")]

use std::hint::black_box;
use std::thread;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use crossbeam_queue::ArrayQueue;
use sample_ring::{Pushed, channel};

type Item = [u64; 5];

const CAPACITY: usize = 4_096;
const ACROSS: usize = 1_000_000;

fn in_one_thread(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fill and drain, one thread");
    group.throughput(Throughput::Elements(CAPACITY as u64));
    group.bench_function("ring", |bencher| {
        let (mut producer, mut consumer) = channel::<Item, ()>(CAPACITY, ()).unwrap();
        bencher.iter(|| {
            for number in 0..CAPACITY {
                producer.push(black_box([number as u64; 5]));
            }
            consumer.drain(CAPACITY, |items| {
                black_box(items);
            })
        });
    });
    group.bench_function("ArrayQueue", |bencher| {
        let queue = ArrayQueue::<Item>::new(CAPACITY);
        bencher.iter(|| {
            for number in 0..CAPACITY {
                let _ = queue.push(black_box([number as u64; 5]));
            }
            while let Some(item) = queue.pop() {
                black_box(item);
            }
        });
    });
    group.finish();
}

fn across_threads(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a million items, two threads");
    group.throughput(Throughput::Elements(ACROSS as u64)).sample_size(10);
    group.bench_function("ring", |bencher| {
        bencher.iter_batched(
            || channel::<Item, ()>(CAPACITY, ()).unwrap(),
            |(mut producer, mut consumer)| {
                let writer = thread::spawn(move || {
                    for number in 0..ACROSS {
                        while producer.push([number as u64; 5]) == Pushed::Full {
                            thread::yield_now();
                        }
                    }
                });
                let mut left = ACROSS;
                while left > 0 {
                    left -= consumer.drain(CAPACITY, |items| {
                        black_box(items);
                    });
                }
                writer.join()
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("ArrayQueue", |bencher| {
        bencher.iter_batched(
            || std::sync::Arc::new(ArrayQueue::<Item>::new(CAPACITY)),
            |queue| {
                let writer = {
                    let queue = queue.clone();
                    thread::spawn(move || {
                        for number in 0..ACROSS {
                            while queue.push([number as u64; 5]).is_err() {
                                thread::yield_now();
                            }
                        }
                    })
                };
                let mut left = ACROSS;
                while left > 0 {
                    if let Some(item) = queue.pop() {
                        black_box(item);
                        left -= 1;
                    }
                }
                writer.join()
            },
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

criterion_group!(benches, in_one_thread, across_threads);
criterion_main!(benches);
