//! Why a group cannot be built or read.

use std::error::Error as StdError;
use std::fmt::Write;
use std::io;

use protocol::MAX_GROUP;
use thiserror::Error;

use crate::availability::Unavailable;
use crate::error_kind::ErrorKind;
use crate::quality::Grade;

/// Why a group cannot be built or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum GroupError {
    /// The builder has no event.
    #[error("the group has no event")]
    NoEvent,
    /// The events of a thread's group need too many counters.
    #[error("{given} events are too many for a thread: a group has at most {MAX_GROUP}")]
    TooManyEvents {
        /// Number of events, on a hybrid that of all core types.
        given: usize,
    },
    /// Windows has no CPU with this number.
    #[error("CPU {cpu} cannot exist")]
    NoCpu {
        /// The number.
        cpu: u32,
    },
    /// The thread cannot be restricted to the wanted CPU.
    #[error("the thread cannot be restricted to CPU {cpu}")]
    NotPinned {
        /// The CPU.
        cpu: u32,
        /// The error of Windows.
        #[source]
        cause: io::Error,
    },
    /// A region has begun already.
    #[error("a region has begun already")]
    AlreadyBegun,
    /// No region has begun.
    #[error("no region has begun")]
    NotBegun,
    /// The required grade is unavailable.
    #[error("{grade} counts are unavailable: {why}")]
    Unavailable {
        /// The required grade.
        grade: Grade,
        /// The reason.
        why: Unavailable,
    },
    /// No empty region had exact counts.
    #[error("no empty region had exact counts, so the overhead is unknown")]
    CannotCalibrate,
    /// The thread runs where programs cannot execute RDPMC, though it could before.
    #[error(
        "programs cannot execute RDPMC on CPU {cpu} (CR4.PCE is clear), although they could when the group was built"
    )]
    NoUserRdpmc {
        /// The CPU.
        cpu: u32,
    },
    /// Windows did not return what it keeps for the thread.
    #[error("Windows cannot read the profile of the thread")]
    Profiling {
        /// The error of Windows.
        #[source]
        cause: io::Error,
    },
}

impl GroupError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoEvent | Self::TooManyEvents { .. } | Self::AlreadyBegun | Self::NotBegun => ErrorKind::InvalidInput,
            Self::NoCpu { .. } => ErrorKind::NoProcessor,
            Self::Unavailable { .. } => ErrorKind::GradeUnavailable,
            Self::NotPinned { .. } | Self::CannotCalibrate | Self::NoUserRdpmc { .. } | Self::Profiling { .. } => {
                ErrorKind::Other
            }
        }
    }

    /// Returns what the user can do about it, if anything.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::TooManyEvents { .. } => "measure the events in several groups, one after the other",
            Self::NoUserRdpmc { .. } => "build the group again",
            Self::Unavailable { why, .. } => return why.remedy().map(str::to_owned),
            Self::CannotCalibrate => "end programs that use much of the processors, then calibrate again",
            Self::NoEvent
            | Self::NoCpu { .. }
            | Self::NotPinned { .. }
            | Self::AlreadyBegun
            | Self::NotBegun
            | Self::Profiling { .. } => return None,
        };
        Some(text.to_owned())
    }
}

/// Returns what happened and its causes in one line.
pub(crate) fn in_one_line(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        // Writing to a `String` cannot fail.
        let _ = write!(text, ": {error}");
        cause = error.source();
    }
    let words = text.split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}
