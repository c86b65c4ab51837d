//! criterion-benchmark.exe: benchmarks of criterion, measured by halprof-criterion. Each iteration executes a known
//! number of instructions, which it tells the bench through `thread-profiling.dll`.
//!
//! `exact` repeats disturbed regions, `plain` is criterion's own loop. The argument is the number of instructions.

#[cfg(windows)]
mod work;

#[cfg(windows)]
fn main() -> std::process::ExitCode {
    use std::process::ExitCode;

    let number = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(1000);
    match run(number) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("instructions cannot be counted: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs both benchmarks.
#[cfg(windows)]
fn run(number: u64) -> Result<(), Box<dyn std::error::Error>> {
    use std::time::Duration;

    use criterion::Criterion;
    use halprof_criterion::{Events, ExactBencher};

    let criterion = Criterion::default().with_measurement(Events::open("instructions")?).without_plots();
    // The output of an earlier run would add a comparison.
    let folder = tempfile::tempdir()?;
    let criterion = criterion.output_directory(folder.path()).sample_size(10).nresamples(100);
    let mut criterion = criterion.warm_up_time(Duration::from_millis(50)).measurement_time(Duration::from_millis(100));
    criterion.bench_function("exact", |bencher| bencher.iter_exact(|| work::execute(number)));
    criterion.bench_function("plain", |bencher| bencher.iter(|| work::execute(number)));
    Ok(())
}

#[cfg(not(windows))]
fn main() {
    eprintln!("criterion-benchmark needs Windows");
    std::process::exit(2);
}
