//! Errors of what a program writes.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use thiserror::Error as ThisError;

use crate::exit::Exit;
use crate::{Error, UserError};

/// Why output was not written.
#[derive(Debug, ThisError)]
pub enum OutputError {
    /// The file cannot be written.
    #[error("cannot write {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
    /// Standard output or standard error cannot be written.
    #[error("cannot write the output")]
    Stream(#[from] io::Error),
    /// The same, reported by the JSON serializer.
    #[error("cannot write the output")]
    Json(#[from] serde_json::Error),
}

impl UserError for OutputError {
    fn exit(&self) -> Exit {
        Exit::Failure
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::File { cause, .. } if cause.kind() == ErrorKind::NotFound => {
                Some("-o with a file in a folder that exists".to_owned())
            }
            Self::File { .. } | Self::Stream(_) | Self::Json(_) => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(cause: io::Error) -> Self {
        OutputError::from(cause).into()
    }
}

impl From<serde_json::Error> for Error {
    fn from(cause: serde_json::Error) -> Self {
        OutputError::from(cause).into()
    }
}
