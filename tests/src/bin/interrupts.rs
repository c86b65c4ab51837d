//! Interrupts the driver at every instruction of each scenario, and prints what came of it.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use clap::Parser;
use cpuid_dumps::CpuIdentity;
use tests::Lab;
use tests::interrupts::{MAX_INSTRUCTIONS, Row, Scenario, Sweep, sweep};

/// Interrupt the driver at every instruction
#[derive(Parser)]
struct Arguments {
    /// The processor, by its name in lab/machine/cpuid-dumps
    #[arg(long, value_name = "NAME", value_parser = cpuid_dumps::parse_name)]
    identity: &'static CpuIdentity,
    /// The scenarios; all by default
    #[arg(long, value_name = "NAME")]
    scenario: Vec<Scenario>,
    /// The seed of what is chosen at random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Interrupt only this number of instructions of each scenario, chosen at random
    #[arg(long, value_name = "NUMBER")]
    sample: Option<usize>,
}

/// Pairs of interrupts in each scenario.
const PAIRS: usize = 200;

/// Instructions of each scenario at which the other processor is interrupted.
const ELSEWHERE: usize = 300;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns whether nothing was wrong.
fn run(Arguments { identity, scenario, seed, sample }: &Arguments) -> Result<bool> {
    let name = identity.name;
    let [_, vendor, _, _] = identity.cpuid().cpuid(0, 0);
    let is_intel = vendor == u32::from_le_bytes(*b"Genu");
    let scenarios = if scenario.is_empty() { &Scenario::ALL[..] } else { scenario };
    let (started, mut sum, mut passed) = (Instant::now(), Row::default(), true);
    println!("{}", heading(name, *seed));
    let mut lab = Lab::boot(name)?;
    lab.install()?;
    for scenario in scenarios.iter().copied().filter(|scenario| is_intel || !scenario.needs_pebs()) {
        let wanted = Sweep {
            scenario,
            is_intel,
            seed: *seed,
            single: *sample,
            pairs: sample.unwrap_or(PAIRS).min(PAIRS),
            elsewhere: Some(sample.unwrap_or(ELSEWHERE).min(ELSEWHERE)),
        };
        let row = sweep(&mut lab, wanted)?;
        println!("{}", line(name, scenario.name(), &row));
        for failure in &row.failures {
            println!("  {failure}");
        }
        passed &= row.failures.is_empty();
        sum.add(&row);
    }
    lab.finish()?;
    sum.time = started.elapsed();
    println!("{}", line(name, "all", &sum));
    if sum.skipped > 0 && sample.is_none() {
        println!("{name}: instructions are skipped that repeat earlier ones of a call of more than {MAX_INSTRUCTIONS}");
    }
    Ok(passed)
}

fn heading(name: &str, seed: u64) -> String {
    let what = ["Instructions", "Skipped", "Delivered", "Masked", "Idle", "Pairs", "Elsewhere", "Runs", "Failures"];
    let what: Vec<String> = what.iter().map(|title| format!("{title:>12}")).collect();
    format!("{name}, seed {seed}\n{:16}{:16}{}{:>10}", "Processor", "Scenario", what.concat(), "Time")
}

fn line(name: &str, scenario: &str, row: &Row) -> String {
    let Row { instructions, skipped, delivered, masked, idle, pairs, elsewhere, runs, .. } = *row;
    let failures = row.failures.len().try_into().unwrap_or(u64::MAX);
    let numbers = [instructions, skipped, delivered, masked, idle, pairs, elsewhere, runs, failures];
    let numbers: Vec<String> = numbers.iter().map(|number| format!("{number:>12}")).collect();
    format!("{name:16}{scenario:16}{}{:>8.0} s", numbers.concat(), row.time.as_secs_f64())
}
