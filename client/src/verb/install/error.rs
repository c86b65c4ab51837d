//! Errors of `install` that do not concern the file.

use std::error::Error as StdError;
use std::fmt;

use thiserror::Error as ThisError;

use user_error::exit::Exit;
use user_error::{Error, UserError};

/// Why the driver was not installed, although the file is halprof's driver.
#[derive(Debug, ThisError)]
pub enum InstallError {
    /// Detached sessions would end without their counts.
    #[error("detached sessions run, and would lose their counts; nothing was changed\n  running: {}", .0.join("\n           "))]
    SessionsRun(Vec<String>),
    /// The service runs, but the driver does not answer as this client expects.
    #[error("the driver was started, but does not answer")]
    NoAnswer(#[source] Error),
}

impl UserError for InstallError {
    fn exit(&self) -> Exit {
        match self {
            Self::SessionsRun(_) => Exit::Busy,
            Self::NoAnswer(cause) => cause.exit(),
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::SessionsRun(_) => Some(".\\client stop --all, or: .\\client install --end-sessions".to_owned()),
            Self::NoAnswer(cause) => cause.remedy(),
        }
    }
}

/// A step failed, and what was done before it was undone, or could not be.
#[derive(Debug)]
pub struct Undone {
    /// Why the step failed.
    pub cause: Error,
    /// The state now.
    pub outcome: String,
}

impl fmt::Display for Undone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl StdError for Undone {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.source()
    }
}

impl UserError for Undone {
    fn exit(&self) -> Exit {
        self.cause.exit()
    }

    fn outcome(&self) -> Option<String> {
        Some(self.outcome.clone())
    }

    fn remedy(&self) -> Option<String> {
        self.cause.remedy()
    }
}
