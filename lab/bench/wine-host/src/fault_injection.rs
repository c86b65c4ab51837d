//! Injected failures: calls of a driver that fail because a test asks for it.

use crate::lock::lock;
use std::{collections::BTreeSet, sync::Mutex};

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

/// A function, and the addresses from which it was called, the innermost first, relative to the driver.
type Site = (String, Vec<u64>);

/// The injected failures, and the function that the last one hit.
#[derive(Debug)]
pub struct FaultInjection(Mutex<Calls>);

#[derive(Debug)]
struct Calls {
    countdown: Countdown,
    /// Whether the next call fails with whose stack no call has failed yet.
    new_stack: bool,
    /// The stacks with which a call has failed.
    failed_stacks: BTreeSet<Site>,
    /// The function that failed.
    failed: Option<String>,
}

impl FaultInjection {
    /// Returns a state in which no call fails.
    #[must_use]
    pub const fn new() -> Self {
        let calls =
            Calls { countdown: Countdown::none(), new_stack: false, failed_stacks: BTreeSet::new(), failed: None };
        Self(Mutex::new(calls))
    }

    /// Makes the `nth` call from now fail, and forgets which function failed before.
    pub fn fail_nth(&self, nth: Option<u64>) {
        let mut calls = lock(&self.0);
        calls.countdown.set(nth);
        calls.failed = None;
    }

    /// Makes the next call with a new stack fail, or none, and forgets which function failed before.
    pub fn fail_new_stack(&self, fail: bool) {
        let mut calls = lock(&self.0);
        calls.new_stack = fail;
        calls.failed = None;
    }

    /// Makes every stack a new one.
    pub fn forget_stacks(&self) {
        lock(&self.0).failed_stacks.clear();
    }

    /// Returns the function that failed, if one did.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        lock(&self.0).failed.clone()
    }

    /// Counts a call of `function` by a driver, and returns whether the call must fail. `stack` returns the stack of
    /// the call.
    #[must_use]
    pub fn fails(&self, function: &str, stack: impl FnOnce() -> Vec<u64>) -> bool {
        let mut calls = lock(&self.0);
        let mut fails = calls.countdown.fails();
        if !fails && calls.new_stack {
            fails = calls.failed_stacks.insert((function.to_owned(), stack()));
            calls.new_stack = !fails;
        }
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

    #[test]
    fn one_call_fails_with_each_stack() {
        const CALLS: [(&str, u64); 4] = [("a", 1), ("a", 2), ("b", 1), ("a", 1)];
        let faults = FaultInjection::new();
        let failing = || CALLS.iter().position(|(function, address)| faults.fails(function, || vec![*address]));
        assert_eq!(failing(), None);
        for expected in [Some(0), Some(1), Some(2), None] {
            faults.fail_new_stack(true);
            assert_eq!(failing(), expected);
            assert_eq!(failing(), None, "not again until the next command");
            assert_eq!(faults.failed(), expected.map(|place| CALLS[place].0.to_owned()));
            faults.fail_new_stack(false);
        }
        faults.forget_stacks();
        faults.fail_new_stack(true);
        assert_eq!(failing(), Some(0));
    }
}
