//! Arguments that several verbs share.

use clap::Args;
use protocol::flags;

/// The output format.
#[derive(Debug, Args)]
pub struct Json {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The option `--force` of the verbs that start sessions.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct Force {
    /// Take counters that another program has enabled without reserving them
    #[arg(long)]
    force: bool,
}

impl Force {
    /// Returns the flags of a start request.
    pub fn flags(self) -> u32 {
        if self.force { flags::FORCE } else { 0 }
    }
}
