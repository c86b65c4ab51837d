//! The error of every function of the library.

use thiserror::Error as ThisError;

use crate::driver::RequestError;
use crate::event::alone::TogetherError;
use crate::event::event_cache::CacheError;
use crate::event::malformed::Malformed;
use crate::event::named::NoGeneric;
use crate::event::vendor_event::CannotCountEvent;
use crate::group_error::GroupError;
use crate::open::OpenError;
use crate::refusal::Refusal;
use crate::source::SourceError;

/// What a program can distinguish an error by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The program was not built for Windows.
    NotWindows,
    /// The driver is not installed.
    NotInstalled,
    /// The driver is installed but not started.
    NotStarted,
    /// Windows or the driver denies access: the process is not elevated, or has no SeSystemProfilePrivilege.
    Denied,
    /// A value of the request is invalid: the text of an event, modes, an interval, the number of events.
    InvalidInput,
    /// No event has this name or number.
    UnknownSource,
    /// The event exists, but cannot be counted or sampled in this way on this machine.
    UnsupportedSource,
    /// All counters that can count the event are in use, or are too few.
    NoFreeCounter,
    /// The library and the driver have different protocol versions.
    VersionMismatch,
    /// The session or event to read or stop does not run.
    NotRunning,
    /// The event already runs detached.
    AlreadyRunning,
    /// No such processor is active.
    NoProcessor,
    /// The driver has no memory or no free session.
    NoResources,
    /// Another driver has the performance interrupt.
    InterruptTaken,
    /// Another driver or program has the counters.
    CountersTaken,
    /// The Debug Store is in use, or Windows refuses its control area.
    DebugStoreTaken,
    /// Another driver has configured Windows' thread profiling, or a thread still profiles.
    ThreadProfilingTaken,
    /// The required grade of a group is unavailable.
    GradeUnavailable,
    /// Windows or the driver failed in a way that has no kind of its own.
    Other,
}

/// Any error of the library.
///
/// The text says what happened, and [`source`](std::error::Error::source) says why. A text can have several lines, of
/// which all but the first are indented.
#[derive(Debug, ThisError)]
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
    /// The driver cannot count an event of the processor.
    #[error(transparent)]
    CannotCount(#[from] CannotCountEvent),
    /// Two events cannot be counted together.
    #[error(transparent)]
    Together(#[from] TogetherError),
    /// The imported events cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A group cannot be built or read.
    #[error(transparent)]
    Group(#[from] GroupError),
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
            Self::CannotCount(error) => error.kind(),
            Self::Together(error) => error.kind(),
            Self::Cache(error) => error.kind(),
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
            Self::CannotCount(error) => error.remedy(),
            Self::Together(error) => error.remedy(),
            Self::Cache(error) => error.remedy(),
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
