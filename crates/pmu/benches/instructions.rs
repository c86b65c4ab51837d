//! Executes each operation once, for callgrind to count its instructions; `cargo xtask bench` does that.
//!
//! By itself it only writes what each operation accesses: interface, operation, N, k, RDMSR, WRMSR and RDPMC, in the
//! order in which callgrind writes its counts.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "a bench that cannot be set up must not measure")]

mod scene;

use std::hint::black_box;

use pmu::{CurrentCpu, ProcessorIndex};
use scene::{INTERFACES, Scene, Use, measured_interrupt, measured_read, measured_start, measured_stop};

/// Not the first processor, so that the position of its counters is computed.
const PROCESSOR: ProcessorIndex = ProcessorIndex::new(5);

fn main() {
    for interface in INTERFACES {
        for n in [1, 4] {
            start(interface, "start", n, Use::Count);
        }
        for n in [1, 4] {
            start(interface, "start, sampling", n, Use::Sample);
        }
        for n in [1, 4] {
            run(interface, "stop", (n, 0), Use::Count, |Scene { hal, cpu, counters }| {
                measured_stop(
                    black_box(hal),
                    CurrentCpu::new(black_box(cpu), black_box(PROCESSOR)),
                    black_box(*counters),
                );
            });
        }
        for n in [1, 4] {
            run(interface, "read", (n, 0), Use::Count, |Scene { hal, cpu, counters }| {
                measured_read(
                    black_box(hal),
                    CurrentCpu::new(black_box(cpu), black_box(PROCESSOR)),
                    black_box(*counters),
                );
            });
        }
        for of in [(1, 1), (4, 0), (4, 1), (4, 4)] {
            interrupt(interface, "interrupt", of, Use::Sample);
        }
    }
}

fn start((interface, identity): (&str, &str), operation: &str, n: u8, how: Use) {
    let scene = Scene::new(identity, n, how, 0);
    told(interface, operation, (n, 0), &scene, |Scene { hal, cpu, counters }| {
        measured_start(black_box(hal), CurrentCpu::new(black_box(cpu), black_box(PROCESSOR)), black_box(*counters));
    });
}

fn interrupt(interface: (&str, &str), operation: &str, of: (u8, u8), how: Use) {
    run(interface, operation, of, how, |Scene { hal, cpu, .. }| {
        measured_interrupt(black_box(hal), CurrentCpu::new(black_box(cpu), black_box(PROCESSOR)));
    });
}

/// `work` on counters that run.
fn run((interface, identity): (&str, &str), operation: &str, of: (u8, u8), how: Use, work: impl FnOnce(&Scene)) {
    let scene = Scene::new(identity, of.0, how, of.1).started();
    told(interface, operation, of, &scene, work);
}

fn told(interface: &str, operation: &str, (n, k): (u8, u8), scene: &Scene, work: impl FnOnce(&Scene)) {
    let before = scene.cpu.accesses();
    work(scene);
    let after = scene.cpu.accesses();
    let accesses = [after.rdmsr - before.rdmsr, after.wrmsr - before.wrmsr, after.rdpmc - before.rdpmc];
    report(format_args!("{interface}|{operation}|{n}|{k}"), accesses);
}

/// Callgrind writes what it has counted whenever it comes here.
#[inline(never)]
fn report(operation: std::fmt::Arguments<'_>, [rdmsr, wrmsr, rdpmc]: [u64; 3]) {
    println!("{operation}|{rdmsr}|{wrmsr}|{rdpmc}");
}
