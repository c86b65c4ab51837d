//! The list of what the driver did that real Windows or real hardware punishes.

use crate::{lock::lock, nt};
use bench_protocol::Violation;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Mutex,
};

/// A driver that does it in a loop is told so often enough.
const MAX_VIOLATIONS: usize = 1_000;

static LIST: Mutex<Vec<Violation>> = Mutex::new(Vec::new());

pub fn record(violation: Violation) {
    let mut list = lock(&LIST);
    if list.len() < MAX_VIOLATIONS {
        nt::print(&format!("violation: {violation}"));
        list.push(violation);
    }
}

pub fn other(text: impl Into<String>) {
    record(Violation::Other(text.into()));
}

/// Takes the list.
pub fn take() -> Vec<Violation> {
    std::mem::take(&mut *lock(&LIST))
}

/// Runs what a driver or Wine calls. A panic must not go on into the caller, who is no Rust: it is noted, and
/// `fallback` is the result.
pub fn catch_panic<T>(name: &str, fallback: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        other(format!("the lab itself failed in {name}"));
        fallback
    })
}
