//! Serves interrupts as the driver's handler does, each once, for callgrind to count the instructions from the overflow
//! to the sample in the ring; `cargo xtask bench` does that.
//!
//! By itself it only writes what each interrupt accesses, as `instructions` of `profile` does, whose scene it shares.

#![expect(clippy::expect_used, reason = "a bench that can not be set up must not measure")]
#![forbid(unsafe_code)]

#[path = "../../profile/benches/scene/mod.rs"]
#[expect(dead_code, reason = "this bench needs a part of it")]
mod scene;

use std::hint::black_box;

use engine::{Interrupted, Sampler, Subscriber, Tallies};
use protocol::modes;
use scene::{INTERFACES, PROCESSORS, Recorder, Scene, Use};

/// Any but the first: its place has to be computed.
const PROCESSOR: u32 = 5;

const WHAT: Interrupted = Interrupted { ip: 0xFFFF_F800_0000_1234, process: 4, thread: 8, modes: modes::KERNEL };

fn main() {
    for (interface, identity) in INTERFACES {
        for (n, k, subscribers) in [(1, 1, 1), (4, 0, 1), (4, 1, 1), (4, 4, 1), (4, 1, 2)] {
            let Scene { hal, cpu, counters } = Scene::new(identity, n, Use::Sample, k);
            let sampler = Sampler::new(hal, PROCESSORS, 10_000_000).expect("memory");
            sampler.set_budget(900);
            let mut rings = Vec::new();
            for subscriber in (0..subscribers).map(Subscriber) {
                let (outlet, samples) = ring::channel(64, Tallies::default()).expect("memory");
                sampler.subscribe(PROCESSOR, subscriber, outlet, counters);
                rings.push(samples);
            }
            sampler.start(&cpu, PROCESSOR, counters);
            let before = cpu.accesses();
            measured_interrupt(black_box(&sampler), black_box(&cpu), black_box(PROCESSOR));
            let after = cpu.accesses();
            let told: Vec<usize> = rings.iter().map(ring::Consumer::len).collect();
            assert_eq!(told, vec![usize::from(k); usize::from(subscribers)], "every sample is there");
            let operation = if subscribers == 1 { "sample" } else { "sample for two" };
            let accesses = [after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc];
            report(format_args!("{interface}|{operation}|{n}|{k}"), accesses);
        }
    }
}

/// The clock and what was interrupted are the kernel's to tell, and no part of what is counted.
#[inline(never)]
fn measured_interrupt(sampler: &Sampler, cpu: &Recorder, processor: u32) {
    black_box(sampler.interrupt(cpu, processor, || black_box(0), &WHAT));
}

/// Callgrind writes what it has counted whenever it comes here.
#[inline(never)]
fn report(operation: std::fmt::Arguments<'_>, [rdmsr, wrmsr, rdpmc]: [u64; 3]) {
    println!("{operation}|{rdmsr}|{wrmsr}|{rdpmc}");
}
