//! What every function of the ABI does: no panic leaves it, and failures are remembered.

use std::panic::{self, AssertUnwindSafe};

use crate::failure::{Failure, remember};
use crate::outcome::{HALPROF_OK, Status};

/// Runs a function of the ABI that returns a status.
pub fn status(work: impl FnOnce() -> Result<(), Failure>) -> Status {
    match checked(work) {
        Ok(()) => HALPROF_OK,
        Err(failure) => {
            remember(&failure);
            failure.status
        }
    }
}

/// Runs a function of the ABI that returns a value, or `otherwise` if it fails.
pub fn value<T>(otherwise: T, work: impl FnOnce() -> Result<T, Failure>) -> T {
    checked(work).unwrap_or_else(|failure| {
        remember(&failure);
        otherwise
    })
}

/// Turns a panic into a failure. The state behind `work` stays usable: a group that was in use is marked as broken.
fn checked<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        // The payload's own destructor may panic again.
        std::mem::forget(panic);
        Err(Failure::defect(format!("halprof failed inside: {text}")))
    })
}
