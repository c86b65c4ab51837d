//! Which counters made precise records, or decided on the condition of samples.

use std::collections::BTreeMap;

use pmu::Recorder;
use report::{Contents, SampledSource};
use serde::Serialize;

/// A kind of counter that made precise records, or decided on the condition of samples.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecorderFields {
    /// The kind.
    pub counter: RecorderName,
    /// Number of processors.
    pub processors: u64,
}

/// Kind of a counter that records precisely, or decides on samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RecorderName {
    /// A general counter: the event after the overflow writes the record.
    General,
    /// A general counter with precise distribution: the overflow writes it.
    GeneralDistributed,
    /// Fixed counter 0, with precise distribution.
    FixedDistributed,
    /// One that another counter reloads, which decides on the condition of its samples. The windows that do not meet it
    /// are not counted.
    Reloaded,
}

impl RecorderName {
    const fn of(recorder: Recorder) -> Option<Self> {
        Some(match recorder {
            Recorder::None => return None,
            Recorder::General => Self::General,
            Recorder::Distributed => Self::GeneralDistributed,
            Recorder::Fixed => Self::FixedDistributed,
            Recorder::Reloaded => Self::Reloaded,
        })
    }
}

/// Returns the kinds of counters that made the precise records of a source or decided on its samples, the best first.
pub fn recorders(contents: &Contents, sampled: SampledSource) -> Vec<RecorderFields> {
    let counts = contents.summary.iter().flat_map(|summary| &summary.counts);
    let of_source = counts.filter(|count| {
        count.event == sampled.event && contents.sample_counts.source_on(count.event, count.processor) == sampled
    });
    let mut all: BTreeMap<Recorder, u64> = BTreeMap::new();
    for recorder in of_source.filter_map(|count| Recorder::from_number(count.recorder)) {
        *all.entry(recorder).or_default() += 1;
    }
    let named = |(recorder, processors)| Some(RecorderFields { counter: RecorderName::of(recorder)?, processors });
    all.into_iter().rev().filter_map(named).collect()
}
