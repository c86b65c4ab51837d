//! Samples per second written to a recording and read from it, in batches as the driver returns them.

#![expect(clippy::unwrap_used, reason = "a failed setup must end the benchmark")]

use std::hint::black_box;
use std::io::{self, sink};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use protocol::{CounterKind, CounterSample, Mode, SampleRecord};
use recording::{Reader, RecordedSession, Summary, Writer};

const SAMPLES: usize = 1 << 20;

/// Samples per request.
const BATCHES: [usize; 3] = [64, 1_024, 16_384];

fn session() -> RecordedSession {
    RecordedSession {
        created_unix_ms: 0,
        client: String::new(),
        driver: String::new(),
        processor: String::new(),
        computer: None,
        command: Vec::new(),
        clock: 10_000_000,
        processors: Vec::new(),
        batch: 0,
        condition: None,
        last_branches: 0,
        tasks: recording::RecordedTasks::default(),
        part: 0,
        core_types: Vec::new(),
        events: Vec::new(),
    }
}

fn samples() -> Vec<SampleRecord> {
    let sample = |time| CounterSample {
        time,
        ip: time.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        process: 4,
        thread: 8,
        processor: 0,
        event: 0x13,
        interval: 65_536,
        kind: CounterKind::Sample,
        mode: Mode::User,
        pebs_sequence: 0,
        cookie: 0,
    };
    (0..SAMPLES as u64).map(|time| sample(time).into()).collect()
}

fn write<W: io::Write>(sink: W, samples: &[SampleRecord], batch: usize) -> W {
    let mut writer = Writer::new(sink, &session()).unwrap();
    for samples in samples.chunks(batch) {
        writer.samples(samples).unwrap();
    }
    let summary = Summary::default();
    writer.finish(&summary).unwrap()
}

fn throughput(criterion: &mut Criterion) {
    let samples = samples();
    let mut group = criterion.benchmark_group("a million samples");
    group.throughput(Throughput::Elements(SAMPLES as u64)).sample_size(10);
    for batch in BATCHES {
        group.bench_function(format!("write, {batch} at a time"), |bencher| {
            bencher.iter(|| write(sink(), &samples, batch));
        });
        let file = write(Vec::new(), &samples, batch);
        group.bench_function(format!("read, {batch} at a time"), |bencher| {
            bencher.iter(|| Reader::new(&file[..]).unwrap().for_each(|block| drop(black_box(block.unwrap()))));
        });
    }
    group.finish();
}

criterion_group!(benches, throughput);
criterion_main!(benches);
