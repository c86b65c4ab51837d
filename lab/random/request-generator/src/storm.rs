//! The plan of a fuzzer and its report, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Which sessions are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restrictions {
    /// Sampling only by counters, each session with an interval of its own, so that no two sessions share a counter
    /// that overflows. Each overflow then belongs to one session.
    pub exact: bool,
    /// Sampling at low rates, because events occur as time passes.
    pub slow: bool,
}

/// A storm of requests, sent by several threads at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StormPlan {
    /// The seed of all threads.
    pub seed: u64,
    /// Number of requests of all threads together.
    pub requests: u64,
    /// Number of threads.
    pub threads: u32,
    /// Which sessions are left out.
    pub restrictions: Restrictions,
}

/// Outcomes of the requests with one control code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeCounts {
    /// The reply reports success.
    pub accepted: u64,
    /// The reply reports a refusal.
    pub refused: u64,
    /// The request failed with an error of Windows, without a reply.
    pub failed: u64,
}

impl CodeCounts {
    /// Adds the outcomes of others.
    pub const fn add(&mut self, others: Self) {
        self.accepted += others.accepted;
        self.refused += others.refused;
        self.failed += others.failed;
    }

    /// Returns the number of requests.
    #[must_use]
    pub const fn sum(self) -> u64 {
        self.accepted + self.refused + self.failed
    }
}

/// The state of a storm, or its result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StormReport {
    /// Whether all threads have ended.
    pub ended: bool,
    /// Outcomes by the name of the request; `unknown` for codes that the driver does not have.
    pub codes: BTreeMap<String, CodeCounts>,
    /// Refusals by the number of the [`ErrorCode`](protocol::ErrorCode).
    pub refusals: BTreeMap<u32, u64>,
    /// Number of handles opened, handles closed, and requests for cancellation.
    pub opened: u64,
    /// See `opened`.
    pub closed: u64,
    /// See `opened`.
    pub cancels: u64,
    /// Number of requests that were cancelled.
    pub cancelled: u64,
    /// Number of samples received.
    pub samples: u64,
    /// The first wrong replies, each with its thread and the number of the step.
    pub wrong: Vec<String>,
    /// The longest time that a thread has been in its present step, in milliseconds.
    pub longest_step: u64,
    /// Which step that is.
    pub step: String,
}

impl StormReport {
    /// Adds the numbers of another thread or of another storm.
    pub fn add(&mut self, other: &Self) {
        for (name, counts) in &other.codes {
            self.codes.entry(name.clone()).or_default().add(*counts);
        }
        for (cause, times) in &other.refusals {
            *self.refusals.entry(*cause).or_default() += times;
        }
        self.opened += other.opened;
        self.closed += other.closed;
        self.cancels += other.cancels;
        self.cancelled += other.cancelled;
        self.samples += other.samples;
        self.wrong.extend(other.wrong.iter().cloned());
    }

    /// Returns the number of requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.codes.values().map(|counts| counts.sum()).sum()
    }
}
