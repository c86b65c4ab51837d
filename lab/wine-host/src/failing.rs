//! Calls of a driver that fail because a test says so.

use crate::{countdown::Countdown, lock};
use std::sync::Mutex;

struct Calls {
    countdown: Countdown,
    /// The function that failed.
    failed: Option<String>,
}

static CALLS: Mutex<Calls> = Mutex::new(Calls { countdown: Countdown::none(), failed: None });

/// The n-th call from now fails; which it was is asked for anew.
pub fn fail(nth: Option<u64>) {
    let mut calls = lock(&CALLS);
    calls.countdown.set(nth);
    calls.failed = None;
}

/// The function that failed, if one did.
pub fn failed() -> Option<String> {
    lock(&CALLS).failed.clone()
}

/// A driver calls this function: whether it is to fail.
pub fn hits(function: &str) -> bool {
    let mut calls = lock(&CALLS);
    let hit = calls.countdown.hits();
    if hit {
        calls.failed = Some(function.to_owned());
    }
    hit
}
