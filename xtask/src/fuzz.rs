//! `cargo xtask fuzz`: fuzzers, built optimized.

use anyhow::Result;
use clap::Subcommand;

use crate::{run, workspace::Workspace};

/// What is fuzzed.
#[derive(Subcommand)]
pub enum Target {
    /// Send random requests to the engine on the model
    ///
    /// Executes events, delivers interrupts early and late, sleeps, adds processors, writes registers as other programs
    /// do and lets calls of Windows fail, on every processor of the model. Compares every count with what was executed.
    Requests {
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
    },
}

/// Number of requests in `soak`.
const SOAK_REQUESTS: u64 = 100_000_000;

/// Runs a fuzzer.
pub fn run(workspace: &Workspace, target: &Target) -> Result<()> {
    let Target::Requests { seed, requests, minutes, threads } = target;
    let mut command = workspace.cargo("run");
    command.args(["--quiet", "--locked", "--release", "--package", "request-fuzzer", "--"]);
    command.args(["--seed", &seed.to_string(), "--requests", &requests.to_string()]);
    command.args(["--threads", &threads.to_string()]);
    if let Some(minutes) = minutes {
        command.args(["--minutes", &minutes.to_string()]);
    }
    run::verbose(&mut command)
}

/// Runs the fuzzers as long as `soak` does.
pub fn soak(workspace: &Workspace) -> Result<()> {
    run(workspace, &Target::Requests { seed: 1, requests: SOAK_REQUESTS, minutes: None, threads: 2 })
}
