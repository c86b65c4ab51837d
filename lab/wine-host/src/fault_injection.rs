//! Injected failures: calls of a driver that fail because a test asks for it.

use crate::lock::lock;
use std::sync::Mutex;

/// A counter of calls, down to the one that fails.
#[derive(Debug, Default)]
pub struct Countdown(Option<u64>);

impl Countdown {
    /// Returns a countdown with which no call fails.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Makes the `nth` call from now fail, and no other; 1 is the next call. With `None` no call fails.
    pub fn set(&mut self, nth: Option<u64>) {
        self.0 = nth.filter(|nth| *nth > 0);
    }

    /// Counts a call, and returns whether it fails.
    pub fn fails(&mut self) -> bool {
        let nth = self.0.take();
        self.0 = nth.filter(|nth| *nth > 1).map(|nth| nth - 1);
        nth == Some(1)
    }
}

/// The injected failure, and the function that it hit.
#[derive(Debug)]
pub struct FaultInjection(Mutex<Calls>);

#[derive(Debug)]
struct Calls {
    countdown: Countdown,
    /// The function that failed.
    failed: Option<String>,
}

impl FaultInjection {
    /// Returns a state in which no call fails.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Calls { countdown: Countdown::none(), failed: None }))
    }

    /// Makes the `nth` call from now fail, and forgets which function failed before.
    pub fn fail_nth(&self, nth: Option<u64>) {
        let mut calls = lock(&self.0);
        calls.countdown.set(nth);
        calls.failed = None;
    }

    /// Returns the function that failed, if one did.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        lock(&self.0).failed.clone()
    }

    /// Counts a call of `function` by a driver, and returns whether the call must fail.
    #[must_use]
    pub fn fails(&self, function: &str) -> bool {
        let mut calls = lock(&self.0);
        let fails = calls.countdown.fails();
        if fails {
            calls.failed = Some(function.to_owned());
        }
        fails
    }
}

impl Default for FaultInjection {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_nth_call_fails() {
        for (nth, fails) in [(None, None), (Some(0), None), (Some(1), Some(1)), (Some(3), Some(3))] {
            let mut countdown = Countdown::none();
            countdown.set(nth);
            let failed: Vec<u64> = (1..10).filter(|_| countdown.fails()).collect();
            assert_eq!(failed, Vec::from_iter(fails), "{nth:?}");
        }
    }
}
