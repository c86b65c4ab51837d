//! Context switches per second that a recording with `--off-cpu` follows, from the events as Windows delivers them to
//! records in a file, and the bytes of a record.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a failed setup must end the benchmark")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use recorder::off_cpu::OffCpu;
use recording::{RecordedEvent, RecordedSession, RecordedTasks, Summary, Writer};
use stacks::CallGraph;
use system::trace::raw::{RawTraceEvent, STACK_WALK, THREAD};

const SWITCHES: u64 = 100_000;
const CPUS: u32 = 4;
const THREADS: u32 = 64;

/// Frames of a stack, of which half are in the kernel.
const FRAMES: u64 = 24;

/// Units of the clock per second, and between two switches.
const CLOCK: u64 = 10_000_000;
const BETWEEN: u64 = 200;

/// An event with its payload.
struct Event {
    provider: u128,
    opcode: u8,
    time: u64,
    cpu: u32,
    payload: Vec<u8>,
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Each CPU switches between its threads in turn. Each switch has a thread that was made ready, and a stack.
fn events() -> Vec<Event> {
    let mut events = Vec::new();
    let mut running: Vec<u32> = (1..=CPUS).collect();
    for (number, turn) in (0..SWITCHES).zip((0..CPUS).cycle()) {
        let varied = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 57;
        let (time, own) = (CLOCK + number * BETWEEN + varied, usize::try_from(turn).unwrap());
        let new = 1 + (running[own] + CPUS - 1) % THREADS;
        let old = std::mem::replace(&mut running[own], new);
        let ready = [words(&[new]), vec![1, 0, 0, 0]].concat();
        events.push(Event { provider: THREAD, opcode: 50, time: time - 20 - varied, cpu: turn, payload: ready });
        let switch = [words(&[new, old, 0]), vec![37, 1, 5, 0], words(&[0, 0])].concat();
        events.push(Event { provider: THREAD, opcode: 36, time, cpu: turn, payload: switch });
        for base in [0xFFFF_F800_0000_0000_u64, 0x7FF7_0000_0000] {
            let frame = |frame: u64| (base + frame * 64 + u64::from(new % 8) * 4_096).to_le_bytes();
            let frames = (0..FRAMES / 2).flat_map(frame).collect();
            let payload = [time.to_le_bytes().to_vec(), words(&[4, new]), frames].concat();
            events.push(Event { provider: STACK_WALK, opcode: 32, time: time + 1, cpu: turn, payload });
        }
    }
    events
}

/// Returns the length of the recording.
fn record(events: &[Event]) -> usize {
    let session = RecordedSession {
        created_unix_ms: 0,
        client: String::new(),
        driver: String::new(),
        processor: String::new(),
        computer: None,
        command: Vec::new(),
        clock: CLOCK,
        processors: (0..CPUS).collect(),
        batch: 0,
        condition: None,
        last_branches: 0,
        tasks: RecordedTasks::default(),
        part: 0,
        core_types: Vec::new(),
        events: vec![RecordedEvent::off_cpu()],
    };
    let mut writer = Writer::new(Vec::new(), &session).unwrap();
    let mut off_cpu = OffCpu::new(CallGraph::Both);
    off_cpu.begin(RecordedTasks::default(), 0, CLOCK);
    (1..=THREADS).for_each(|thread| off_cpu.add_thread(4, thread));
    for chunk in events.chunks(4_096) {
        for Event { provider, opcode, time, cpu, payload } in chunk {
            let (provider, opcode, time, processor) = (*provider, *opcode, *time, *cpu);
            off_cpu.add(&RawTraceEvent {
                provider,
                opcode,
                version: 4,
                time,
                processor,
                payload,
                ..RawTraceEvent::EMPTY
            });
        }
        writer.stacked_samples(&off_cpu.take()).unwrap();
    }
    let (found, summary) = off_cpu.finish();
    writer.stacked_samples(&found).unwrap();
    assert_eq!((summary.lost, summary.without_stack), (0, 0));
    let summary = Summary::default();
    writer.finish(&summary).unwrap().len()
}

fn off_cpu(criterion: &mut Criterion) {
    let events = events();
    let bytes = record(&events);
    println!("{} switches, {} bytes of events, {bytes} bytes in the file", SWITCHES, bytes_of(&events));
    let mut group = criterion.benchmark_group("off the CPU");
    group.throughput(Throughput::Elements(SWITCHES)).sample_size(10);
    group.bench_function("events to file", |bencher| bencher.iter(|| record(black_box(&events))));
    group.finish();
}

/// Returns the bytes of the events in Windows' buffers, each with a header of 16 bytes (PERFINFO_TRACE_HEADER).
fn bytes_of(events: &[Event]) -> usize {
    events.iter().map(|event| event.payload.len() + 16).sum()
}

criterion_group!(benches, off_cpu);
criterion_main!(benches);
