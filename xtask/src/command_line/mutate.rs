//! The arguments of `mutate`.

use clap::Args;

/// Arguments of `mutate`.
#[derive(Args)]
pub struct MutateArguments {
    /// A package in the folder crates; `driver`; or `fuzzer`, whose faults are defects that were mended
    pub area: String,
    /// Chooses the mutants
    #[arg(long, default_value_t = 24)]
    pub seed: u64,
    /// The most mutants to try
    #[arg(long, default_value_t = 300)]
    pub most: usize,
    /// Take only mutants in lines that changed since this commit
    #[arg(long, value_name = "BASE")]
    pub changed: Option<String>,
    /// Take only faults of `driver` or `fuzzer` with this in their name
    #[arg(long, value_name = "PART")]
    pub only: Option<String>,
}
