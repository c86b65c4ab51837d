//! Serves interrupts as the driver's handler does, each once, for callgrind to count the instructions from the overflow
//! to the sample in the ring; `cargo xtask bench` does that.
//!
//! By itself it only writes what each interrupt accesses, as `instructions` of `pmu` does. An access is a load or a
//! store here, so that the compiler has its registers as free as in the driver, where it is an instruction, too; they
//! are taken off.

#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]
#![forbid(unsafe_code)]

#[path = "plain/mod.rs"]
mod plain;

use std::hint::black_box;
use std::num::NonZeroU64;
use std::sync::atomic::Ordering;

use engine::{Condition, CpuSampleStats, Hal, Interrupted, SampleProducer, Sampler, Subscriber, Ticks};
use model::Mode;
use plain::PlainCpu;
use pmu::state::{self, CounterSet};
use pmu::{Cpu, CurrentCpu, ProcessorIndex, Source};
use protocol::SampleRecord;
use simulation::SimMachine;

/// The interfaces with counters, each with a processor that has four of them at least.
const INTERFACES: [(&str, &str); 4] =
    [("Amd64", "amd-legacy"), ("Amd64 V2", "zen4-7700x"), ("Emon v1", "intel-v1"), ("Emon v2+", "haswell-4710mq")];

/// Any but the first of so many: its place has to be computed.
const PROCESSOR: ProcessorIndex = ProcessorIndex::new(5);
const PROCESSORS: u32 = 64;

const INTERVAL: u32 = 65_536;

const WHAT: Interrupted =
    Interrupted { ip: 0xFFFF_F800_0000_1234, process: 4, thread: 8, mode: protocol::Mode::Kernel };

fn main() {
    for (interface, name) in INTERFACES {
        for (n, k, subscribers) in [(1, 1, 1), (4, 0, 1), (4, 1, 1), (4, 4, 1), (4, 1, 2)] {
            let cpu = PlainCpu::new(name, k);
            let (sampler, rings) = set_up(&cpu, n, subscribers, false);
            measured_interrupt(black_box(&sampler), CurrentCpu::new(black_box(&cpu), black_box(PROCESSOR)));
            let told: Vec<usize> = rings.iter().map(sample_ring::Consumer::len).collect();
            assert_eq!(told, vec![usize::from(k); usize::from(subscribers)], "every sample is there");
            let operation = if subscribers == 1 { "sample" } else { "sample for two" };
            report(format_args!("{interface}|{operation}|{n}|{k}"), accesses(name, n, k));
        }
        for (n, k) in [(4, 1), (4, 4)] {
            traced(interface, name, n, k);
        }
        let cpu = PlainCpu::new(name, 1);
        let (sampler, rings) = set_up(&cpu, 4, 1, false);
        sampler.set_frequency(PROCESSOR, 0, 1_000);
        measured_interrupt(black_box(&sampler), CurrentCpu::new(black_box(&cpu), black_box(PROCESSOR)));
        assert_eq!(rings.iter().map(sample_ring::Consumer::len).sum::<usize>(), 1);
        report(format_args!("{interface}|sample by frequency|4|1"), accesses(name, 4, 1));
        conditional(interface, name);
    }
}

/// Serves an interrupt that has a sample if counter 1 has counted less than counter 2.
fn conditional(interface: &str, name: &str) {
    let cpu = PlainCpu::new(name, 1);
    let condition = Condition { ratio: [1, 2], is_above: false, limit: [1, 1] };
    let (sampler, rings) = set_up_with(&cpu, 4, 1, false, |stats| stats.set_condition(0, condition, [1, 2]));
    let [_, _, second, _] = &cpu.counters;
    second.fetch_add(1, Ordering::Relaxed);
    measured_interrupt(black_box(&sampler), CurrentCpu::new(black_box(&cpu), black_box(PROCESSOR)));
    assert_eq!(rings.iter().map(sample_ring::Consumer::len).sum::<usize>(), 1);
    let [rdmsr, wrmsr, rdpmc] = accesses(name, 4, 1);
    report(format_args!("{interface}|sample with condition|4|1"), [rdmsr, wrmsr, rdpmc + 2]);
}

/// Serves an interrupt while a trace session wants events, and takes the events as the DPC does.
fn traced(interface: &str, name: &str, n: u8, k: u8) {
    let cpu = PlainCpu::new(name, k);
    let (sampler, rings) = set_up(&cpu, n, 1, true);
    let current = CurrentCpu::new(black_box(&cpu), black_box(PROCESSOR));
    measured_interrupt(black_box(&sampler), current);
    assert_eq!(rings.iter().map(sample_ring::Consumer::len).sum::<usize>(), usize::from(k));
    report(format_args!("{interface}|sample with event|{n}|{k}"), accesses(name, n, k));
    assert_eq!(measured_events(black_box(&sampler), current), usize::from(k), "every sample has an event");
    report(format_args!("{interface}|events taken|{n}|{k}"), [0; 3]);
}

/// `n` counters, whose samples go to so many, and to a trace session if it wants events.
fn set_up(
    cpu: &impl Cpu,
    n: u8,
    subscribers: u8,
    wants_events: bool,
) -> (Sampler, Vec<sample_ring::Consumer<SampleRecord, CpuSampleStats>>) {
    set_up_with(cpu, n, subscribers, wants_events, |_| ())
}

/// As [`set_up`], with what is set for each subscriber.
fn set_up_with(
    cpu: &impl Cpu,
    n: u8,
    subscribers: u8,
    wants_events: bool,
    set: impl Fn(&CpuSampleStats),
) -> (Sampler, Vec<sample_ring::Consumer<SampleRecord, CpuSampleStats>>) {
    let current = CurrentCpu::new(cpu, PROCESSOR);
    let hal = Hal::with_states(cpu, pmu::Options::default(), PROCESSORS, 0, state::allocate).expect("memory");
    hal.handler.set(Some(NonZeroU64::MIN), 1).expect("a free slot");
    let state = hal.state_for(Source(6), 0, true).expect("a source that general counters count").with_owner(1);
    let state = state.with_interval(INTERVAL).with_user(true).with_kernel(true);
    let counters = (0..n).map(|_| hal.reserve(PROCESSOR, state).expect("a free counter")).collect();
    let sampler = Sampler::new(hal, 10_000_000);
    sampler.set_budget(900);
    sampler.set_wants_events(wants_events);
    let subscribe = |subscriber| {
        let (producer, fetched): (SampleProducer, _) =
            sample_ring::channel(64, CpuSampleStats::default()).expect("memory");
        set(producer.side());
        sampler.subscribe(current, Subscriber(subscriber), producer, counters, Ticks(0));
        fetched
    };
    let rings = (0..subscribers).map(subscribe).collect();
    // Until two ticks agree on the rate of time stamps, each interrupt reads the clock twice.
    (1..=3).for_each(|time| _ = sampler.tick(current, Ticks(time)));
    sampler.start(current, counters);
    (sampler, rings)
}

/// RDMSR, WRMSR and RDPMC of such an interrupt, as the model counts them.
fn accesses(name: &str, n: u8, k: u8) -> [u64; 3] {
    let machine = SimMachine::named(name, PROCESSORS);
    let current = machine.current(PROCESSOR.number());
    let (cpu, number) = (current.cpu(), current.index().number());
    let (sampler, rings) = set_up(cpu, n, 1, false);
    // The others are set back to their beginning, as if they had been started later.
    machine.run(number, Mode::Kernel, &|_| INTERVAL.into());
    let later = CounterSet::first(n).without(CounterSet::first(k));
    let _ = sampler.hal().stop(current, later);
    sampler.start(current, later);
    let before = cpu.model().accesses();
    let _ = sampler.interrupt(current, || Ticks(0), &WHAT);
    let after = cpu.model().accesses();
    assert_eq!(rings.iter().map(sample_ring::Consumer::len).sum::<usize>(), usize::from(k));
    [after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc]
}

/// The clock and what was interrupted are the kernel's to tell, and no part of what is counted.
#[inline(never)]
fn measured_interrupt(sampler: &Sampler, current: CurrentCpu<'_, PlainCpu>) {
    let _ = black_box(sampler.interrupt(current, || Ticks(current.cpu().clock.load(Ordering::Relaxed)), &WHAT));
}

/// Takes the events of a processor, which the DPC writes. Returns their number.
#[inline(never)]
fn measured_events(sampler: &Sampler, current: CurrentCpu<'_, PlainCpu>) -> usize {
    core::iter::from_fn(|| black_box(sampler.take_event(current))).count()
}

/// Callgrind writes what it has counted whenever it comes here.
#[inline(never)]
fn report(operation: std::fmt::Arguments<'_>, [rdmsr, wrmsr, rdpmc]: [u64; 3]) {
    println!("{operation}|{rdmsr}|{wrmsr}|{rdpmc}");
}
