//! `cargo xtask interrupts`: builds everything, then runs the program `interrupts` of the package `tests`.

use anyhow::{Result, ensure};
use clap::Args;
use cpuid_dumps::CpuIdentity;

use crate::{artifacts, demo, package, prerequisites, workspace::Workspace};

/// What to interrupt.
#[derive(Args, Default)]
pub struct InterruptArguments {
    /// Name of the processor that the model simulates, instead of an Intel and an AMD one
    #[arg(long, value_name = "NAME", value_parser = cpuid_dumps::parse_name)]
    identity: Option<&'static CpuIdentity>,
    /// The call into the driver, such as `start` or `tick`, instead of all
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// The seed of what is chosen at random
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
}

/// Builds what is missing and interrupts the driver.
pub fn run(workspace: &Workspace, InterruptArguments { identity, scenario, seed }: &InterruptArguments) -> Result<()> {
    ensure!(!cfg!(windows), "the test bench, which steps through the driver, runs on Linux");
    prerequisites::for_building(workspace)?;
    artifacts::build(workspace)?;
    package::make(workspace)?;
    let mut command = workspace.cargo("run");
    command.args(["--quiet", "--locked", "--package", "tests", "--bin", "interrupts", "--"]);
    command.args(["--seed", &seed.to_string()]);
    if let Some(identity) = identity {
        command.args(["--identity", identity.name]);
    }
    if let Some(scenario) = scenario {
        command.args(["--scenario", scenario]);
    }
    demo::on_bench(workspace, &mut command)
}
