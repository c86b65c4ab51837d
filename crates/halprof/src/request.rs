//! The name of a request, and its errors.

use std::io;

use protocol::Code;

use crate::error::Error;
use crate::hal_error::HalError;
use crate::open::OpenError;
use crate::reply::InvalidReply;
use crate::request_error::RequestError;

/// Returns the error of a request to which Windows returned no reply.
pub fn unanswered(code: Code, cause: io::Error) -> Error {
    let cause = match cause.downcast::<HalError>() {
        Ok(error) => return error.into(),
        Err(cause) => cause,
    };
    if OpenError::is_denied(&cause) {
        return OpenError::Denied { action: format!("to the request {}", name(code)), cause }.into();
    }
    RequestError::Failed { request: name(code), cause }.into()
}

/// Returns the error of an invalid reply.
pub fn invalid(code: Code, cause: InvalidReply) -> Error {
    RequestError::Malformed { request: name(code), cause }.into()
}

/// Returns the name of a request.
pub fn name(code: Code) -> &'static str {
    protocol::find(code as u32).map_or("unknown", |spec| spec.name)
}
