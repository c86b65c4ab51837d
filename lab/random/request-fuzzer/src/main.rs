//! The command line of the fuzzer.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use request_fuzzer::{Catalog, DAYS, Kind, SCARCE, Settings, day, replay, run};

/// Send random requests to the engine on the model, and check every count
#[derive(Parser)]
#[command(name = "request-fuzzer")]
struct Arguments {
    /// Seed of the first episode; a failing run prints the seed that repeats it
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Number of requests
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000)]
    requests: u64,
    /// End after this time, even with fewer requests
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Number of threads
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    threads: usize,
    /// Share of the episodes in which something is scarce, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = SCARCE)]
    scarce: u32,
    /// Only identities whose names contain this text
    #[arg(long, value_name = "TEXT")]
    processor: Option<String>,
    /// Instead of random machines, let this many hours pass on one machine of each of some processors
    #[arg(long, value_name = "HOURS")]
    hours: Option<u64>,
    /// Let the processors answer RDMSR and CPUID with lies
    #[arg(long, conflicts_with = "hours")]
    lies: bool,
    /// Instead of random episodes, repeat the one of an input that `cargo xtask fuzz files` found for `engine`, or,
    /// with `--lies`, for `lying_processor`
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Number of last steps in the report of a failure
    #[arg(long, value_name = "NUMBER", default_value_t = 60)]
    last_steps: usize,
}

fn main() -> ExitCode {
    let Arguments { seed, requests, minutes, threads, scarce, processor, hours, lies, input, last_steps } =
        Arguments::parse();
    let catalog = Catalog::new(processor.as_deref());
    if catalog.is_empty() {
        eprintln!("error: no processor has this name");
        return ExitCode::from(2);
    }
    let time = minutes.map(Duration::from_mins);
    let kind = if lies { Kind::Lying } else { Kind::Honest { scarce } };
    let settings = Settings { seed, requests, time, threads: threads.max(1), kind, last_steps };
    // The report of a failure has the message.
    std::panic::set_hook(Box::new(|_| ()));
    if let Some(hours) = hours {
        return days(seed, Duration::from_hours(hours), processor.as_deref(), &catalog);
    }
    if let Some(input) = input {
        return repeat(&input, kind, last_steps, &catalog);
    }
    let begin = Instant::now();
    let outcome = run(&settings, &catalog, &|stats, time| {
        println!(
            "{:>6} s: {} requests, {} machines, {} sessions, {} sleeps",
            time.as_secs(),
            stats.requests,
            stats.episodes,
            stats.sessions,
            stats.sleeps
        );
    });
    match outcome {
        Ok(stats) => {
            print!("{stats}");
            let time = begin.elapsed().as_secs_f64();
            #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
            let rate = stats.requests as f64 / time;
            println!("first seed {seed}, {threads} threads, {time:.1} s, {rate:.0} requests per second: no failure");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {}", failure.text);
            let ((machines, requests), time) = (failure.before, begin.elapsed().as_secs_f64());
            eprintln!("found after {machines} machines and {requests} requests, in {time:.1} s");
            let kind = if lies { "--lies".to_owned() } else { format!("--scarce {scarce}") };
            eprintln!("try: request-fuzzer --seed {} {kind} --requests 1 --threads 1", failure.seed);
            ExitCode::FAILURE
        }
    }
}

/// Repeats the episode of an input.
fn repeat(input: &Path, kind: Kind, last_steps: usize, catalog: &Catalog) -> ExitCode {
    let outcome = std::fs::read(input).map_err(|error| format!("{}: {error}", input.display()));
    match outcome.and_then(|bytes| replay(&bytes, kind, last_steps, catalog)) {
        Ok(stats) => {
            print!("{stats}");
            ExitCode::SUCCESS
        }
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::FAILURE
        }
    }
}

/// Lets the time pass on one machine after the other.
fn days(seed: u64, span: Duration, filter: Option<&str>, catalog: &Catalog) -> ExitCode {
    let wanted = |identity: &&cpuid_dumps::CpuIdentity| match filter {
        Some(part) => identity.name.contains(part),
        None => DAYS.contains(&identity.name),
    };
    for identity in cpuid_dumps::all().iter().filter(wanted) {
        let begin = Instant::now();
        match day(seed, span, identity, catalog) {
            Ok(stats) => {
                println!("{}, {:.1} s, seed {seed}:\n{stats}", identity.name, begin.elapsed().as_secs_f64());
            }
            Err(failure) => {
                eprintln!("error: {}", failure.text);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
