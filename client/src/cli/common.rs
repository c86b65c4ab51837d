//! Arguments that several verbs share.

use clap::{Args, ValueEnum};
use protocol::flags;

use system::connection::{self, BackendChoice, Connection};
use terminal::context::Context;
use user_error::Error;

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

/// What counts.
#[derive(Debug, Clone, Default, Args)]
pub struct BackendArgs {
    /// What counts [default: the driver, and Windows' own HAL if it is not installed]
    #[arg(long, value_enum, value_name = "NAME")]
    backend: Option<BackendName>,
}

/// What counts, as users type it.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum BackendName {
    /// The driver
    Driver,
    /// Windows' own HAL, without the driver
    Hal,
    /// Windows' profile objects: estimates of single processes, without administrator
    Profile,
}

impl BackendArgs {
    /// Returns whether the counts are estimates.
    pub fn estimates(&self) -> bool {
        matches!(self.backend, Some(BackendName::Profile))
    }

    /// Opens what counts, and tells what it cannot do.
    pub fn open(&self, context: &mut Context) -> Result<Connection, Error> {
        let choice = match self.backend {
            None => BackendChoice::Installed,
            Some(BackendName::Driver) => BackendChoice::Driver,
            Some(BackendName::Hal) => BackendChoice::Hal,
            Some(BackendName::Profile) => BackendChoice::ProfileObjects,
        };
        let connection = connection::choose(context.system()?, choice)?;
        if let Some(limits) = connection.backend().limits {
            context.warn(&format!("note: {limits}"))?;
        }
        Ok(connection)
    }
}
