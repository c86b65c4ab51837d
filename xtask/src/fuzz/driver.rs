//! `cargo xtask fuzz driver`: runs the program `fuzz_driver` of the package `tests`.

use anyhow::{Result, ensure};
use clap::Args;
use cpuid_dumps::CpuIdentity;

use crate::{artifacts, demo, prerequisites, workspace::Workspace};

/// What to run.
#[derive(Args)]
pub struct Arguments {
    /// Seed of the first round, decimal or with `0x`; the time without this
    #[arg(long, value_name = "N")]
    seed: Option<String>,
    /// Number of requests, divided equally between the processors
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    requests: u64,
    /// One processor instead of all of them
    #[arg(long, value_name = "NAME", value_parser = cpuid_dumps::parse_name)]
    identity: Option<&'static CpuIdentity>,
}

impl Arguments {
    /// Returns the arguments for this number of requests on all processors.
    pub const fn of_requests(requests: u64) -> Self {
        Self { seed: None, requests, identity: None }
    }
}

/// Builds what is missing and runs the fuzzer.
pub fn run(workspace: &Workspace, Arguments { seed, requests, identity }: &Arguments) -> Result<()> {
    ensure!(!cfg!(windows), "the test bench runs on Linux");
    prerequisites::for_building(workspace)?;
    artifacts::build(workspace)?;
    let mut program = workspace.cargo("run");
    program.args(["--quiet", "--locked", "--package", "tests", "--bin", "fuzz_driver", "--"]);
    program.args(["--requests", &requests.to_string()]);
    if let Some(seed) = seed {
        program.args(["--seed", seed]);
    }
    if let Some(identity) = identity {
        program.args(["--identity", identity.name]);
    }
    demo::on_bench(workspace, &mut program)
}
