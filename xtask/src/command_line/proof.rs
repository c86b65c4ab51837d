//! The arguments of `proof`.

use std::path::PathBuf;

use clap::Args;

/// How the manifest is made, or which one is checked.
#[derive(Args)]
pub struct ProofArguments {
    /// Length of the run, in minutes
    ///
    /// The fuzzers share what the other stages leave. A stage for which no time is left is listed as not run.
    #[arg(long, value_name = "MINUTES", default_value_t = 120)]
    pub minutes: u64,
    /// Check the manifest in a package instead: its signature, and that it is of the driver beside it
    #[arg(long, value_name = "FOLDER", conflicts_with = "minutes")]
    pub check: Option<PathBuf>,
}
