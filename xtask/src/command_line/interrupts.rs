//! The arguments of `interrupts`.

use clap::Args;
use cpuid_dumps::CpuIdentity;

/// What to interrupt.
#[derive(Args, Default)]
pub struct InterruptArguments {
    /// Name of the processor that the model simulates, instead of an Intel and an AMD one
    #[arg(long, value_name = "NAME", value_parser = cpuid_dumps::parse_name)]
    pub identity: Option<&'static CpuIdentity>,
    /// The call into the driver, such as `start` or `tick`, instead of all
    #[arg(long, value_name = "NAME")]
    pub scenario: Option<String>,
    /// The seed of what is chosen at random
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Interrupt only this number of instructions of each call, chosen at random
    #[arg(long, value_name = "NUMBER")]
    pub sample: Option<usize>,
}
