//! Fuzzers: programs that look for input for which a law does not hold.

mod files;

use anyhow::Result;
use clap::Subcommand;

use crate::workspace::Workspace;

pub use files::soak;

/// What is fuzzed.
#[derive(Subcommand)]
pub enum Fuzz {
    /// Readers of foreign bytes: recordings, CPUID dumps, event names, the makers' files, replies, records
    ///
    /// Builds the targets of the folder fuzz with cargo-fuzz and the nightly toolchain, which are installed if they are
    /// missing, and runs each for some minutes. It begins with the corpus of the repository. What it finds beside it
    /// stays in target/fuzz-corpus; an input that breaks a law is in target/fuzz-findings.
    Files(files::FilesArguments),
}

/// Runs a fuzzer.
pub fn run(workspace: &Workspace, fuzz: &Fuzz) -> Result<()> {
    match fuzz {
        Fuzz::Files(arguments) => files::run(workspace, arguments),
    }
}
