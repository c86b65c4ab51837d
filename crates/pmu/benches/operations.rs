//! Times of start, stop, read and interrupt on one processor, without what accesses to model-specific registers cost:
//! the processor here only takes notes. BENCHMARKS.md says what the figures tell, and what they do not.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]

mod scene;

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion};
use pmu::{CurrentCpu, ProcessorIndex};
use scene::{INTERFACES, PROCESSORS, Scene, Use, measured_interrupt, measured_read, measured_start, measured_stop};

/// Not the first processor, so that the position of its counters is computed.
const PROCESSOR: ProcessorIndex = ProcessorIndex::new(5);

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(40)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1200))
        .configure_from_args();
    without_rdpmc(&mut criterion);
    for (interface, identity) in INTERFACES {
        let mut group = criterion.benchmark_group(interface);
        for n in [1, 4] {
            start(&mut group, identity, n);
            stop(&mut group, identity, n);
            read(&mut group, identity, n);
            interrupt(&mut group, identity, n);
        }
        group.finish();
    }
    criterion.final_summary();
}

/// What the other times are compared with: a counter that stands still is read from memory alone.
fn without_rdpmc(criterion: &mut Criterion) {
    let Scene { hal, cpu, counters } = Scene::new("amd-legacy", 1, Use::Count, 0);
    criterion.bench_function("read of a stopped counter", |bencher| {
        bencher
            .iter(|| measured_read(black_box(&hal), CurrentCpu::new(&cpu, black_box(PROCESSOR)), black_box(counters)));
    });
    assert_eq!(cpu.accesses().rdpmc, 0);
}

/// Over and over again: the state afterwards makes no difference to the next.
fn start(group: &mut BenchmarkGroup<'_, WallTime>, identity: &str, n: u8) {
    let Scene { hal, cpu, counters } = Scene::new(identity, n, Use::Count, 0);
    group.bench_function(format!("start of {n}"), |bencher| {
        bencher
            .iter(|| measured_start(black_box(&hal), CurrentCpu::new(&cpu, black_box(PROCESSOR)), black_box(counters)));
    });
}

/// A counter stops only once: the processors take turns, and those of a batch are started before its time runs.
fn stop(group: &mut BenchmarkGroup<'_, WallTime>, identity: &str, n: u8) {
    let Scene { hal, cpu, counters } = Scene::new(identity, n, Use::Count, 0);
    let mut turns = (0..PROCESSORS).cycle();
    let next = |processor| CurrentCpu::new(&cpu, ProcessorIndex::new(processor));
    group.bench_function(format!("stop of {n}"), |bencher| {
        let start = || {
            let current = next(turns.next().unwrap_or_default());
            hal.start(current, counters);
            current
        };
        let stop = |current| measured_stop(black_box(&hal), current, black_box(counters));
        bencher.iter_batched(start, stop, BatchSize::NumIterations(PROCESSORS.into()));
    });
}

fn read(group: &mut BenchmarkGroup<'_, WallTime>, identity: &str, n: u8) {
    let Scene { hal, cpu, counters } = Scene::new(identity, n, Use::Count, 0).started();
    group.bench_function(format!("read of {n}"), |bencher| {
        bencher
            .iter(|| measured_read(black_box(&hal), CurrentCpu::new(&cpu, black_box(PROCESSOR)), black_box(counters)));
    });
}

fn interrupt(group: &mut BenchmarkGroup<'_, WallTime>, identity: &str, n: u8) {
    let Scene { hal, cpu, .. } = Scene::new(identity, n, Use::Sample, 1).started();
    group.bench_function(format!("interrupt, 1 of {n} overflowed"), |bencher| {
        bencher.iter(|| measured_interrupt(black_box(&hal), CurrentCpu::new(&cpu, black_box(PROCESSOR))));
    });
}
