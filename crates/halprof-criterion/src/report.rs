//! Disturbed regions and samples without events: which are reported, and the sum at the end.

use std::collections::BTreeMap;

/// What criterion gets for each iteration of a sample without events. It takes 0 for an error and drops the benchmark
/// (0.8.2, `analysis/mod.rs`). Far below a single event in any number of iterations; its powers are normal numbers.
pub const NOTHING: f64 = 1e-30;

/// The regions of a measurement.
#[derive(Debug, Default)]
pub struct Report {
    regions: u64,
    /// Number of disturbed regions in samples, by reason.
    disturbed: BTreeMap<String, u64>,
    /// Number of samples without events.
    empty: u64,
}

impl Report {
    /// Notes an exact region.
    pub fn exact(&mut self) {
        self.regions += 1;
    }

    /// Notes a disturbed region that is part of a sample. Returns what to print: once for each reason.
    pub fn disturbed(&mut self, reason: &str) -> Option<String> {
        self.regions += 1;
        let number = self.disturbed.entry(reason.to_owned()).or_default();
        *number += 1;
        (*number == 1).then(|| format!("halprof: a sample has a count that is not exact: {reason}"))
    }

    /// Notes a sample without events.
    pub fn empty(&mut self) {
        self.empty += 1;
    }

    /// Returns what to print at the end, if a region was disturbed or a sample had no events.
    pub fn summary(&self) -> Option<String> {
        let number: u64 = self.disturbed.values().sum();
        let regions = self.regions;
        let reasons = self.disturbed.iter().map(|(reason, number)| format!("\n  {number} times {reason}"));
        let reasons: String = reasons.collect();
        let disturbed =
            (number > 0).then(|| format!("halprof: {number} of {regions} measured regions are not exact:{reasons}"));
        let empty = (self.empty > 0).then(|| {
            format!(
                "halprof: {} samples have no events. Criterion refuses zeros, so that it got {NOTHING:e} events for \
                 them; changes from or to a benchmark without events are meaningless as percentages",
                self.empty
            )
        });
        let texts: Vec<String> = disturbed.into_iter().chain(empty).collect();
        (!texts.is_empty()).then(|| texts.join("\n"))
    }
}
