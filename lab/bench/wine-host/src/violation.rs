//! The list of violations: actions of the driver that real Windows or real hardware punishes.

use crate::{lock::lock, nt, state::machine::MACHINE};
use bench_protocol::Violation;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The list stops growing here, so that a driver that repeats a violation in a loop does not fill the memory.
const MAX_VIOLATIONS: usize = 1_000;

pub fn record(violation: Violation) {
    let mut list = lock(&MACHINE.violations);
    if list.len() < MAX_VIOLATIONS {
        nt::print(&format!("violation: {violation}"));
        list.push(violation);
    }
}

pub fn other(text: impl Into<String>) {
    record(Violation::Other(text.into()));
}

/// Records a violation if the machine sleeps: registers are lost during sleep.
pub fn check_awake(what: impl FnOnce() -> String) {
    if MACHINE.time_mode.is_asleep() {
        other(format!("{} while the machine sleeps", what()));
    }
}

/// Removes and returns the violations.
pub fn take() -> Vec<Violation> {
    std::mem::take(&mut *lock(&MACHINE.violations))
}

/// Runs code that a driver or Wine calls. A panic must not unwind into the foreign caller: it is recorded as a
/// violation, and the result is `fallback`.
pub fn catch_panic<T>(name: &str, fallback: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        other(format!("the lab itself failed in {name}"));
        fallback
    })
}
