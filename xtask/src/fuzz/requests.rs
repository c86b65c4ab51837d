//! The fuzzer of the engine: the program request-fuzzer, built optimized.

use anyhow::Result;
use clap::Args;

use crate::{run, workspace::Workspace};

/// What the fuzzer runs.
#[derive(Args)]
pub struct Arguments {
    /// Seed of the first machine; the others follow
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Number of requests
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000_000)]
    requests: u64,
    /// End after this time, even with fewer requests
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Number of threads
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    threads: usize,
}

impl Arguments {
    /// Makes the arguments of a run with this many requests.
    pub const fn of_requests(requests: u64) -> Self {
        Self { seed: 1, requests, minutes: None, threads: 2 }
    }
}

/// Builds and runs the fuzzer.
pub fn run(workspace: &Workspace, arguments: &Arguments) -> Result<()> {
    let mut command = workspace.cargo("run");
    command.args(["--quiet", "--locked", "--release", "--package", "request-fuzzer", "--"]);
    command.args(["--seed", &arguments.seed.to_string(), "--requests", &arguments.requests.to_string()]);
    command.args(["--threads", &arguments.threads.to_string()]);
    if let Some(minutes) = arguments.minutes {
        command.args(["--minutes", &minutes.to_string()]);
    }
    run::verbose(&mut command)
}
