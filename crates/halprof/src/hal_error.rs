//! Why the HAL of Windows does not serve what the driver would.

use std::io;

use pmu::Source;
use protocol::Event;
use thiserror::Error;

use crate::error_kind::ErrorKind;
use crate::event::raw_event::Notation;
use crate::open::{ELEVATED, OpenError};
use crate::text::unavailable::OTHER_PROFILERS;

/// Why a backend does not serve a request that another one would, or why the HAL of Windows fails.
#[derive(Debug, Error)]
pub enum HalError {
    /// Only the driver can.
    #[error("{what} needs the driver: this Windows has no function for it")]
    NeedsDriver {
        /// What was asked for.
        what: &'static str,
    },
    /// Windows lets administrators alone do it.
    #[error("{what} needs an administrator: others can only count single processes")]
    NeedsElevation {
        /// What was asked for.
        what: &'static str,
    },
    /// Only the HAL can.
    #[error("the driver counts CPUs and not processes")]
    NeedsHal,
    /// A function of Windows failed.
    #[error("{function} failed")]
    Call {
        /// The function, and what it was called for.
        function: &'static str,
        /// Its error.
        #[source]
        cause: io::Error,
    },
    /// Another client counts, or its session cannot be reserved.
    #[error("the session of context switches cannot be reserved: another client counts by the HAL")]
    Reserved {
        /// Error of the function.
        #[source]
        cause: io::Error,
    },
    /// An event could not be added to the sources of the HAL.
    #[error("Windows does not add {} to the sources of its HAL", Notation(Event::of(.event.0)))]
    NotAdded {
        /// The event.
        event: Source,
        /// Error of the function.
        #[source]
        cause: io::Error,
    },
    /// Windows did not give the counters to a session.
    #[error("Windows does not give the counters to this program{holders}")]
    Refused {
        /// The rest of the sentence: who holds which, if Windows tells it.
        holders: String,
        /// Error of the function.
        #[source]
        cause: io::Error,
    },
    /// A CPU executed known work, and its counters did not move.
    #[error("the counters of CPU {processor} stand still: another program or a hypervisor has changed them")]
    StandStill {
        /// The CPU.
        processor: u32,
    },
    /// No counters arrive from a CPU.
    #[error("no counters arrive from CPU {processor}: Windows accepted the events and reports none")]
    Silent {
        /// The CPU.
        processor: u32,
    },
}

impl HalError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Call { cause, .. } | Self::NotAdded { cause, .. } | Self::Refused { cause, .. }
                if OpenError::is_denied(cause) =>
            {
                ErrorKind::Denied
            }
            Self::NeedsElevation { .. } => ErrorKind::Denied,
            Self::NeedsDriver { .. } | Self::NeedsHal | Self::NotAdded { .. } => ErrorKind::UnsupportedSource,
            Self::Call { .. } => ErrorKind::Other,
            Self::Reserved { .. } | Self::Refused { .. } | Self::StandStill { .. } | Self::Silent { .. } => {
                ErrorKind::CountersTaken
            }
        }
    }

    /// Returns what the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::Call { cause, .. } | Self::NotAdded { cause, .. } | Self::Refused { cause, .. }
                if OpenError::is_denied(cause) =>
            {
                ELEVATED
            }
            Self::NeedsElevation { .. } => "--backend hal from an elevated prompt",
            Self::NeedsDriver { .. } | Self::NotAdded { .. } => ".\\client install, then without --backend hal",
            Self::NeedsHal => "--backend hal",
            Self::Call { .. } => return None,
            Self::Reserved { .. } => "wait for the other client to end",
            Self::Refused { .. } | Self::StandStill { .. } | Self::Silent { .. } => OTHER_PROFILERS,
        };
        Some(text.to_owned())
    }
}

/// A backend's device returns it as the error of a request.
impl From<HalError> for io::Error {
    fn from(error: HalError) -> Self {
        Self::other(error)
    }
}
