//! A loop without branches that depend on data, and one with such branches: `cargo bench -p halprof-criterion`.
//!
//! Without the driver it says why it cannot count, and ends with 0, because `cargo test --benches` runs it too.

use std::process::ExitCode;

use criterion::{Criterion, Throughput};
use halprof_criterion::{Events, ExactBencher};

/// Numbers in ascending order, or in an order that cannot be predicted.
fn numbers(random: bool) -> Vec<u32> {
    let mut state = 1_u32;
    let mut next = |number: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if random { state } else { number << 20 }
    };
    (0..4096).map(&mut next).collect()
}

fn count(event: &str) -> Result<(), halprof::Error> {
    let mut criterion = Criterion::default().with_measurement(Events::open(event)?).configure_from_args();
    let mut group = criterion.benchmark_group(event);
    group.throughput(Throughput::Elements(4096));
    for (name, random) in [("ascending", false), ("random", true)] {
        let numbers = numbers(random);
        let sum = || numbers.iter().filter(|number| **number >= 1 << 31).map(|number| u64::from(*number)).sum::<u64>();
        group.bench_function(name, |bencher| bencher.iter_exact(sum));
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}

fn main() -> ExitCode {
    for event in ["instructions", "branch-misses"] {
        if let Err(error) = count(event) {
            eprintln!("{event} cannot be counted: {error}");
        }
    }
    ExitCode::SUCCESS
}
