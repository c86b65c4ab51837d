//! `cargo xtask fuzz`: programs that look for input for which a law does not hold.

#![forbid(unsafe_code)]

mod corpus;
mod driver;
mod files;
mod requests;

use std::process::ExitCode;

use anyhow::Result;
use xtask::{
    command_line::{Command, DriverArguments, FuzzTarget, RequestArguments},
    program,
    workspace::Workspace,
};

fn main() -> ExitCode {
    program::main(|workspace, command| match command {
        Command::Fuzz { target } => run(workspace, target),
        _ => program::unknown(),
    })
}

/// Runs a fuzzer, or adds what one found.
fn run(workspace: &Workspace, target: &FuzzTarget) -> Result<()> {
    match target {
        FuzzTarget::Requests(arguments) => requests::run(workspace, arguments),
        FuzzTarget::Driver(arguments) => driver::run(workspace, arguments),
        FuzzTarget::Files(arguments) => files::run(workspace, arguments),
        FuzzTarget::Add(arguments) => corpus::add(workspace, arguments),
        FuzzTarget::Soak => soak(workspace),
    }
}

/// Runs every fuzzer, as a part of `soak`. Needs the artifacts and the package.
fn soak(workspace: &Workspace) -> Result<()> {
    const REQUESTS: u64 = 100_000_000;
    const LYING_REQUESTS: u64 = 20_000_000;
    const DRIVER_REQUESTS: u64 = 1_000_000;
    requests::run(workspace, &RequestArguments::of_requests(REQUESTS))?;
    requests::run(workspace, &RequestArguments { lies: true, ..RequestArguments::of_requests(LYING_REQUESTS) })?;
    for seed in 1..=2 {
        requests::run(workspace, &RequestArguments::of_a_day(seed))?;
    }
    driver::run(workspace, &DriverArguments::of_requests(DRIVER_REQUESTS))?;
    files::soak(workspace)
}
