//! Injected failures: before each call of the engine that can fail, a test decides whether it does.

use std::cell::Cell;

/// Decides whether a call of the function with this name fails.
pub type Decision = fn(&'static str) -> bool;

thread_local! {
    static DECISION: Cell<Option<Decision>> = const { Cell::new(None) };
}

/// Sets the decision for the calls on this thread. With `None`, which is the default, no call is made to fail.
pub fn decide_faults(decision: Option<Decision>) {
    DECISION.set(decision);
}

/// Returns whether the call of this function fails.
pub(crate) fn fails(function: &'static str) -> bool {
    DECISION.get().is_some_and(|decision| decision(function))
}
