//! Why something that sends cannot begin.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use ureq::http::uri::InvalidUri;

/// Why something that sends cannot begin.
#[derive(Debug, Error)]
pub enum StartError {
    /// The address of the server is malformed. It is not shown because it can contain a password.
    #[error("the address of the server is malformed")]
    Address(#[source] InvalidUri),
    /// The address of the server has another scheme than HTTP, or none.
    #[error("the address of the server begins with neither `http://` nor `https://`")]
    Scheme,
    /// The address of the server has a query, to which no path can be appended.
    #[error("the address of the server contains a `?`")]
    Query,
    /// The name or the value of a header has characters that HTTP forbids. The value is not shown, it can be a secret.
    #[error("the name or the value of the header `{0}` is malformed")]
    Header(String),
    /// The folder in which profiles wait cannot be used.
    #[error("cannot use the folder {path} for waiting profiles")]
    Buffer {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The system has no thread for it.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}
