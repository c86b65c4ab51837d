//! Failures, and the text of the last one of each thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString};

use crate::outcome::{HALPROF_BAD_ARGUMENT, HALPROF_DEFECT, Status};

/// Why a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What the function returns.
    pub status: Status,
    /// What [`last_text`] returns afterwards.
    pub text: String,
}

impl Failure {
    /// Makes a failure.
    pub fn new(status: Status, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    /// An argument is wrong.
    pub fn argument(text: impl Into<String>) -> Self {
        Self::new(HALPROF_BAD_ARGUMENT, text)
    }

    /// The library itself is wrong.
    pub fn defect(text: impl Into<String>) -> Self {
        Self::new(HALPROF_DEFECT, text)
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Keeps the text of a failure for [`last_text`]. A thread that is ending keeps none.
pub fn remember(failure: &Failure) {
    let text = c_string(&failure.text);
    let _ended = LAST.try_with(|last| last.try_borrow_mut().map(|mut last| *last = text));
}

/// Calls `take` with the text of the last failure of this thread: empty before the first.
pub fn last_text<T>(take: impl FnOnce(&CStr) -> T) -> Option<T> {
    LAST.try_with(|last| last.try_borrow().ok().map(|last| take(&last))).ok()?
}

/// Converts a text for C. A zero byte would end it early and is left out.
pub fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "")).unwrap_or_default()
}
