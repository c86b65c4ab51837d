//! The error of a verb, as it is reported to the user.
//!
//! Each area of the client defines its own errors next to its code and implements [`UserError`] for them. This module
//! knows none of them.

pub mod event_error;
pub mod exit;
pub mod output_error;
pub mod reason;
pub mod refusal;
pub mod system_error;
pub mod win32;

use std::error::Error as StdError;
use std::fmt::{self, Write};

use halprof::event::event_cache::CacheError;
use halprof::event::vendor_event::CannotCountEvent;
use halprof::source::SourceError;
use halprof::{OpenError, Refusal, RequestError};
use thiserror::Error as ThisError;

use crate::exit::Exit;
use crate::refusal::remedy as remedy_of_refusal;

/// An error that a user can read. Its `Display` text says what happened, its sources say why. A thread can return it.
pub trait UserError: StdError + Send + Sync + 'static {
    /// Returns the exit code of the client.
    fn exit(&self) -> Exit;

    /// Returns the state after the failure, if the command had begun to change something.
    fn outcome(&self) -> Option<String> {
        None
    }

    /// Returns what the user can do about it, if anything.
    fn remedy(&self) -> Option<String> {
        None
    }
}

/// Any error of the client.
#[derive(Debug)]
pub struct Error(Box<dyn UserError>);

impl<E: UserError> From<E> for Error {
    fn from(error: E) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

impl Error {
    /// Returns the exit code of the client.
    #[must_use]
    pub fn exit(&self) -> Exit {
        self.0.exit()
    }

    /// Returns what the user can do about it, if anything.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        self.0.remedy()
    }

    /// Returns what happened and its causes in one line.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }

    /// Returns the text for standard error: `error:` what happened, `because:` why, `now:` the state, `try:` what to
    /// do.
    #[must_use]
    pub fn report(&self) -> String {
        let mut text = format!("error: {self}");
        let mut cause = self.0.source();
        while let Some(error) = cause {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "\n  because: {error}");
            cause = error.source();
        }
        if let Some(outcome) = self.0.outcome() {
            let _ = write!(text, "\n  now: {outcome}");
        }
        if let Some(remedy) = self.0.remedy() {
            let _ = write!(text, "\n  try: {remedy}");
        }
        text
    }
}

/// Returns why an error happened, without what happened if it tells the two apart.
#[must_use]
pub fn why(error: &dyn StdError) -> String {
    let mut cause = error;
    while let Some(error) = cause.source() {
        cause = error;
    }
    let text = cause.to_string();
    text.split_once("because: ").map_or(text.clone(), |(_, why)| why.to_owned())
}

/// Implements [`UserError`] for errors of the library, which have a kind and a remedy.
macro_rules! library_errors {
    ($($name:ty),* $(,)?) => {
        $(impl UserError for $name {
            fn exit(&self) -> Exit {
                self.kind().into()
            }

            fn remedy(&self) -> Option<String> {
                <$name>::remedy(self)
            }
        })*
    };
}

library_errors!(CacheError, CannotCountEvent, OpenError, RequestError, SourceError);

impl UserError for halprof::Error {
    fn exit(&self) -> Exit {
        self.kind().into()
    }

    fn remedy(&self) -> Option<String> {
        self.refusal().map_or_else(|| Self::remedy(self), remedy_of_refusal)
    }
}

impl UserError for Refusal {
    fn exit(&self) -> Exit {
        self.kind().into()
    }

    fn remedy(&self) -> Option<String> {
        remedy_of_refusal(self)
    }
}

/// An allocation of this process failed.
#[derive(Debug, ThisError)]
#[error("out of memory")]
pub struct OutOfMemory;

impl UserError for OutOfMemory {
    fn exit(&self) -> Exit {
        Exit::Failure
    }
}
