//! The arguments of `fuzz`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use cpuid_dumps::CpuIdentity;

/// What to fuzz.
#[derive(Subcommand)]
pub enum FuzzTarget {
    /// Send random requests to the engine on the model
    ///
    /// Executes events, delivers interrupts early and late, sleeps, adds processors, writes registers as other programs
    /// do and lets calls of Windows fail, on every processor of the model. Compares every count with what was executed.
    /// A failure prints the seed that repeats it.
    Requests(RequestArguments),

    /// Send random requests to the driver as it ships, from two threads of a program
    ///
    /// Runs halprof.sys under Wine on the processors of the model. Meanwhile events occur, timers expire, the machine
    /// sleeps, processors are added, other programs write registers, and programs are killed. Prints the seed; a
    /// failure prints the seed of its round, and that round alone can be repeated with it.
    Driver(DriverArguments),

    /// Readers of foreign bytes: recordings, CPUID dumps, event names, replies and more; and the engine
    ///
    /// Builds the targets of the folder fuzz with cargo-fuzz and the nightly toolchain, which are installed if they are
    /// missing, and runs each for some minutes. It begins with the corpus of the repository. What it finds beside it
    /// stays in target/fuzz-corpus; an input that breaks a law is in target/fuzz-findings.
    Files(FilesArguments),

    /// Add inputs to the corpus of a target of `files`
    Add(AddArguments),

    /// Run every fuzzer at length, as a part of `soak`
    #[command(hide = true)]
    Soak,
}

/// What the fuzzer runs.
#[derive(Args)]
pub struct RequestArguments {
    /// Seed of the first machine; the others follow
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Number of requests
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000_000)]
    pub requests: u64,
    /// End after this time, even with fewer requests
    #[arg(long, value_name = "MINUTES")]
    pub minutes: Option<u64>,
    /// Instead of random machines, let this many hours pass on one machine of each of some processors
    #[arg(long, value_name = "HOURS")]
    pub hours: Option<u64>,
    /// Let the processors answer RDMSR and CPUID with lies; then only the rules for registers are checked
    #[arg(long, conflicts_with = "hours")]
    pub lies: bool,
    /// Number of threads
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    pub threads: usize,
}

impl RequestArguments {
    /// Makes the arguments of a run with this many requests.
    pub const fn of_requests(requests: u64) -> Self {
        Self { seed: 1, requests, minutes: None, hours: None, lies: false, threads: 2 }
    }

    /// Makes the arguments of a run in which a day passes; with an even seed, beside other programs.
    pub const fn of_a_day(seed: u64) -> Self {
        Self { seed, hours: Some(24), ..Self::of_requests(0) }
    }
}

/// What to run.
#[derive(Args)]
pub struct DriverArguments {
    /// Seed of the first round, decimal or with `0x`; the time without this
    #[arg(long, value_name = "N")]
    pub seed: Option<String>,
    /// Number of requests, divided equally between the processors
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub requests: u64,
    /// One processor instead of all of them
    #[arg(long, value_name = "NAME", value_parser = cpuid_dumps::parse_name)]
    pub identity: Option<&'static CpuIdentity>,
}

impl DriverArguments {
    /// Returns the arguments for this number of requests on all processors.
    pub const fn of_requests(requests: u64) -> Self {
        Self { seed: None, requests, identity: None }
    }
}

/// How readers are fuzzed.
#[derive(Args)]
pub struct FilesArguments {
    /// Minutes for each target
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub minutes: u64,
    /// Afterwards, replace the corpus of the repository by the smallest inputs that reach the same code
    #[arg(long)]
    pub minimize: bool,
    /// The target, by the name of its program in fuzz/Cargo.toml; without it all of them
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
}

/// Inputs for a corpus.
#[derive(Args)]
pub struct AddArguments {
    /// The target, by the name of its program in fuzz/Cargo.toml
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// Files, such as one of target/fuzz-findings
    #[arg(value_name = "FILE", required = true)]
    pub inputs: Vec<PathBuf>,
}
