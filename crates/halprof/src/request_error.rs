//! Why a request has no usable reply.

use std::io;

use protocol::MAX_EVENTS;
use thiserror::Error as ThisError;

use crate::error_kind::ErrorKind;
use crate::refusal::SAME_VERSION;
use crate::reply::InvalidReply;

/// Why a request has no usable reply. A refusal by the driver is a [`Refusal`](crate::Refusal).
#[derive(Debug, ThisError)]
pub enum RequestError {
    /// The request failed before the driver could reply with a cause.
    #[error("the driver did not answer the request {request}")]
    Failed {
        /// Name of the request.
        request: &'static str,
        /// Error of Windows.
        #[source]
        cause: io::Error,
    },
    /// The reply violates the protocol.
    #[error("the driver's answer to the request {request} is invalid")]
    Malformed {
        /// Name of the request.
        request: &'static str,
        /// The violation.
        #[source]
        cause: InvalidReply,
    },
    /// More events than a request carries.
    #[error("{given} events are too many: a session takes at most {MAX_EVENTS}")]
    TooManyEvents {
        /// Number of events.
        given: usize,
    },
}

impl RequestError {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooManyEvents { .. } => ErrorKind::InvalidInput,
            Self::Failed { .. } | Self::Malformed { .. } => ErrorKind::Other,
        }
    }

    /// Returns what the user can do about it, if anything.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        matches!(self, Self::Malformed { .. }).then(|| SAME_VERSION.to_owned())
    }
}
