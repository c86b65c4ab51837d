//! The command line of the fuzzer.

#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use request_fuzzer::{Catalog, Settings, run};

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
    /// Only identities whose names contain this text
    #[arg(long, value_name = "TEXT")]
    processor: Option<String>,
}

fn main() -> ExitCode {
    let Arguments { seed, requests, minutes, threads, processor } = Arguments::parse();
    let catalog = Catalog::new(processor.as_deref());
    if catalog.is_empty() {
        eprintln!("error: no processor has this name");
        return ExitCode::from(2);
    }
    let settings = Settings { seed, requests, time: minutes.map(Duration::from_mins), threads: threads.max(1) };
    // The report of a failure has the message.
    std::panic::set_hook(Box::new(|_| ()));
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
            eprintln!("try: request-fuzzer --seed {} --requests 1 --threads 1", failure.seed);
            ExitCode::FAILURE
        }
    }
}
