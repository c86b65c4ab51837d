//! `cargo xtask fuzz`: programs that look for input for which a law does not hold.

mod corpus;
pub mod driver;
mod files;
mod requests;

use anyhow::Result;
use clap::Subcommand;

use crate::workspace::Workspace;

/// What to fuzz.
#[derive(Subcommand)]
pub enum Target {
    /// Send random requests to the engine on the model
    ///
    /// Executes events, delivers interrupts early and late, sleeps, adds processors, writes registers as other programs
    /// do and lets calls of Windows fail, on every processor of the model. Compares every count with what was executed.
    /// A failure prints the seed that repeats it.
    Requests(requests::Arguments),

    /// Send random requests to the driver as it ships, from two threads of a program
    ///
    /// Runs halprof.sys under Wine on the processors of the model. Meanwhile events occur, timers expire, the machine
    /// sleeps, processors are added, other programs write registers, and programs are killed. Prints the seed; a
    /// failure prints the seed of its round, and that round alone can be repeated with it.
    Driver(driver::Arguments),

    /// Readers of foreign bytes: recordings, CPUID dumps, event names, the makers' files, replies, records
    ///
    /// Builds the targets of the folder fuzz with cargo-fuzz and the nightly toolchain, which are installed if they are
    /// missing, and runs each for some minutes. It begins with the corpus of the repository. What it finds beside it
    /// stays in target/fuzz-corpus; an input that breaks a law is in target/fuzz-findings.
    Files(files::FilesArguments),

    /// Add inputs to the corpus of a target of `files`
    Add(corpus::AddArguments),
}

/// Runs a fuzzer, or adds what one found.
pub fn run(workspace: &Workspace, target: &Target) -> Result<()> {
    match target {
        Target::Requests(arguments) => requests::run(workspace, arguments),
        Target::Driver(arguments) => driver::run(workspace, arguments),
        Target::Files(arguments) => files::run(workspace, arguments),
        Target::Add(arguments) => corpus::add(workspace, arguments),
    }
}

/// Runs every fuzzer, as a part of `soak`. Needs the artifacts and the package.
pub fn soak(workspace: &Workspace) -> Result<()> {
    const REQUESTS: u64 = 100_000_000;
    const DRIVER_REQUESTS: u64 = 1_000_000;
    requests::run(workspace, &requests::Arguments::of_requests(REQUESTS))?;
    for seed in 1..=2 {
        requests::run(workspace, &requests::Arguments::of_a_day(seed))?;
    }
    driver::run(workspace, &driver::Arguments::of_requests(DRIVER_REQUESTS))?;
    files::soak(workspace)
}
