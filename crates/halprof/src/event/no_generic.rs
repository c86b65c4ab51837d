//! The error of a generic name that stands for nothing on a machine.

use events::GenericError;
use thiserror::Error as ThisError;

use crate::error_kind::ErrorKind;

/// A generic name that stands for nothing on a machine.
#[derive(Debug, ThisError)]
#[error("{name} cannot be counted")]
pub struct NoGeneric {
    pub(super) name: String,
    #[source]
    pub(super) cause: GenericError,
}

impl NoGeneric {
    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::UnsupportedSource
    }

    /// Returns what the user can do about it, if anything.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        Some(".\\client list   (lists what is supported)".to_owned())
    }
}
