//! The error of every function of the library.

use std::{fmt, iter};

use thiserror::Error as ThisError;

use crate::error_kind::ErrorKind;
use crate::event::alone::TogetherError;
use crate::event::event_cache::CacheError;
use crate::event::malformed::Malformed;
use crate::event::no_generic::NoGeneric;
use crate::event::vendor_event::CannotCountEvent;
use crate::group_error::GroupError;
use crate::hal_error::HalError;
use crate::open::OpenError;
use crate::refusal::Refusal;
use crate::request_error::RequestError;
use crate::source::SourceError;
use crate::text::unavailable::NoCounters;

/// Any error of the library.
///
/// The text says what happened, and [`source`](std::error::Error::source) says why. A text can have several lines, of
/// which all but the first are indented.
#[derive(ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The driver cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A request has no usable reply.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The driver refused a request.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// The text of an event is malformed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// No source of the driver has a name.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A generic name stands for nothing on this machine.
    #[error(transparent)]
    Generic(#[from] NoGeneric),
    /// The machine has no counters.
    #[error(transparent)]
    NoCounters(#[from] NoCounters),
    /// The driver cannot count an event of the processor.
    #[error(transparent)]
    CannotCount(#[from] CannotCountEvent),
    /// Two events cannot be counted together.
    #[error(transparent)]
    Together(#[from] TogetherError),
    /// The imported events cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A backend does not serve a request that another one would.
    #[error(transparent)]
    Hal(#[from] HalError),
    /// A group cannot be built or read.
    #[error(transparent)]
    Group(#[from] GroupError),
}

/// What `main` prints for an error that it returns: the text, why, and what to do.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut causes = iter::successors(std::error::Error::source(self), |cause| cause.source());
        causes.try_for_each(|cause| write!(f, "\n  because: {cause}"))?;
        self.remedy().map_or(Ok(()), |remedy| write!(f, "\n  try: {remedy}"))
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl Error {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Open(error) => error.kind(),
            Self::Request(error) => error.kind(),
            Self::Refused(refusal) => refusal.kind(),
            Self::Malformed(_) => ErrorKind::InvalidInput,
            Self::Source(error) => error.kind(),
            Self::Generic(error) => error.kind(),
            Self::NoCounters(_) => ErrorKind::UnsupportedSource,
            Self::CannotCount(error) => error.kind(),
            Self::Together(error) => error.kind(),
            Self::Cache(error) => error.kind(),
            Self::Hal(error) => error.kind(),
            Self::Group(error) => error.kind(),
        }
    }

    /// Returns what the user can do about it, if anything. Commands are those of client.exe and of Windows.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Open(error) => error.remedy(),
            Self::Request(error) => error.remedy(),
            Self::Refused(refusal) => refusal.remedy(),
            Self::Malformed(_) => None,
            Self::Source(error) => error.remedy(),
            Self::Generic(error) => error.remedy(),
            Self::NoCounters(error) => Some(error.cause.remedy.to_owned()),
            Self::CannotCount(error) => error.remedy(),
            Self::Together(error) => error.remedy(),
            Self::Cache(error) => error.remedy(),
            Self::Hal(error) => error.remedy(),
            Self::Group(error) => error.remedy(),
        }
    }

    /// Returns the refusal of the driver, if the error is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn a_program_that_returns_an_error_from_main_says_why_and_what_to_do() {
        let denied = io::Error::from_raw_os_error(5);
        let error = Error::from(OpenError::new(denied, || Ok(None)));
        let text = format!("{error:?}");
        assert!(text.starts_with(&format!("{error}\n  because: ")), "{text}");
        assert!(text.ends_with(&format!("\n  try: {}", error.remedy().unwrap())), "{text}");
    }
}
