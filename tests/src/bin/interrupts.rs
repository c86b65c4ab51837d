//! Interrupts the driver at every instruction of each scenario, and prints what came of it.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Parser;
use cpuid_dumps::CpuIdentity;
use tests::Lab;
use tests::interrupts::{Row, Scenario, Sweep, sweep};

/// Interrupt the driver at every instruction
#[derive(Parser)]
struct Arguments {
    /// The processors, by their names in lab/cpuid-dumps; an Intel and an AMD one by default
    #[arg(long, value_name = "NAME", value_parser = cpuid_dumps::parse_name)]
    identity: Vec<&'static CpuIdentity>,
    /// The scenarios; all by default
    #[arg(long, value_name = "NAME")]
    scenario: Vec<Scenario>,
    /// The seed of pairs of interrupts
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Interrupt only this number of instructions of each scenario, chosen at random
    #[arg(long, value_name = "NUMBER")]
    sample: Option<usize>,
}

/// The processors if none is named.
const IDENTITIES: [&str; 2] = ["skylake-6600k", "zen4-7700x"];

/// Pairs of interrupts in each scenario.
const PAIRS: usize = 200;

/// Instructions of each scenario at which the other processor is interrupted.
const ELSEWHERE: usize = 500;

/// Returns whether a processor is Intel's.
fn is_intel(name: &str) -> Result<bool> {
    let identity = cpuid_dumps::find(name).with_context(|| format!("there is no identity {name}"))?;
    let [_, vendor, _, _] = identity.cpuid().cpuid(0, 0);
    Ok(vendor == u32::from_le_bytes(*b"Genu"))
}

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
fn run(arguments: &Arguments) -> Result<bool> {
    let identities: Vec<&str> = match arguments.identity.as_slice() {
        [] => IDENTITIES.to_vec(),
        chosen => chosen.iter().map(|identity| identity.name).collect(),
    };
    let scenarios = if arguments.scenario.is_empty() { &Scenario::ALL[..] } else { &arguments.scenario };
    let (started, mut passed) = (Instant::now(), true);
    for name in identities {
        println!(
            "\n{name}, seed {}\n{:14}{:>14}{:>11}{:>8}{:>7}{:>7}{:>11}{:>9}{:>10}{:>9}",
            arguments.seed,
            "Scenario",
            "Instructions",
            "Delivered",
            "Masked",
            "Idle",
            "Pairs",
            "Elsewhere",
            "Stepped",
            "Failures",
            "Time"
        );
        let mut lab = Lab::boot(name)?;
        lab.install()?;
        let has_pebs = is_intel(name)?;
        for scenario in scenarios.iter().copied().filter(|scenario| has_pebs || !scenario.needs_pebs()) {
            let wanted = Sweep {
                scenario,
                is_intel: has_pebs,
                seed: arguments.seed,
                single: arguments.sample,
                pairs: arguments.sample.unwrap_or(PAIRS).min(PAIRS),
                elsewhere: Some(arguments.sample.unwrap_or(ELSEWHERE).min(ELSEWHERE)),
            };
            let Row { instructions, delivered, masked, idle, pairs, elsewhere, stepped, failures, time } =
                sweep(&mut lab, wanted)?;
            println!(
                "{scenario:14}{instructions:>14}{delivered:>11}{masked:>8}{idle:>7}{pairs:>7}{elsewhere:>11}{stepped:>9}\
                 {:>10}{:>7.0} s",
                failures.len(),
                time.as_secs_f64()
            );
            for failure in &failures {
                println!("  {failure}");
            }
            passed &= failures.is_empty();
        }
        lab.finish()?;
    }
    println!("\n{:.0} s", started.elapsed().as_secs_f64());
    Ok(passed)
}
