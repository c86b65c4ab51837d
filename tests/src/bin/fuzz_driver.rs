//! The fuzzer of the driver: random requests to halprof.sys as it ships, from several threads, on each processor.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Parser;
use cpuid_dumps::CpuIdentity;
use tests::{Lab, StormRound, StormTotals};

/// Number of requests of a round, after which the driver is unloaded and everything is checked.
const ROUND: u64 = 5_000;

/// Send random requests to the driver from several threads
#[derive(Parser)]
struct Arguments {
    /// Seed of the first round; each round has the next one
    #[arg(long, value_parser = parse_seed)]
    seed: Option<u64>,
    /// Number of requests, divided equally between the processors
    #[arg(long, default_value_t = 100_000)]
    requests: u64,
    /// Processors, by their names in lab/machine/cpuid-dumps; all without this
    #[arg(long = "identity", value_name = "NAME", value_parser = cpuid_dumps::parse_name)]
    identities: Vec<&'static CpuIdentity>,
    /// Number of threads that send requests
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=16))]
    threads: u32,
}

fn parse_seed(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "not a number".to_owned())
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(Arguments { seed, requests, identities, threads }: Arguments) -> Result<()> {
    let seed = match seed {
        Some(seed) => seed,
        None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
    };
    println!("seed {seed:#x}");
    let all: Vec<_> = if identities.is_empty() { cpuid_dumps::all().iter().collect() } else { identities };
    let (first, share) = (all.first().context("no processor")?, requests.div_ceil(all.len() as u64));
    let mut lab = Lab::boot(first.name)?;
    let (mut totals, mut next) = (StormTotals::default(), seed);
    for identity in &all {
        lab.become_processor(identity.name)?;
        let (mut left, before) = (share, totals.clone());
        while left > 0 {
            let round = StormRound { seed: next, requests: left.min(ROUND), threads };
            round.run(&mut lab, &mut totals).with_context(|| format!("{} with {threads} threads", identity.name))?;
            (left, next) = (left - round.requests, next.wrapping_add(1));
        }
        println!("{:36}{}", identity.name, totals.since(&before));
    }
    println!("\n{totals}");
    lab.finish()
}
