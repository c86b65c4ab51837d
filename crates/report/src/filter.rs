//! Selection of samples.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use protocol::ALL_EVENTS;

use crate::pattern::NamePattern;
use crate::process_keys::ProcessKey;
use crate::sampled_sources::SampledSource;
use crate::slice::Slice;

/// A selection of samples; the default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Selects only samples of these events, by their indexes in
    /// [`RecordedSession::events`](recording::RecordedSession::events).
    pub events: Option<BTreeSet<u32>>,
    /// Selects only samples of this [core type](SampledSource::core_type).
    pub core_type: Option<u32>,
    /// Selects only samples in these processes.
    pub processes: Option<BTreeSet<ProcessKey>>,
    /// Selects only samples while their process ran on so many processors; requires counts with
    /// [`Detail::parallelism`](crate::Detail::parallelism).
    pub parallelism: Vec<RangeInclusive<u32>>,
    /// Selects processors, threads and time. [`Contents::read_slice`](crate::Contents::read_slice) counts only the
    /// samples of a slice.
    pub slice: Slice,
    /// Selects only samples in modules of which one of these matches the file name; empty selects all modules.
    pub modules: Vec<NamePattern>,
    /// Selects only samples in symbols, or in functions inlined into them, of which one of these matches the name;
    /// empty selects all symbols.
    pub symbols: Vec<NamePattern>,
}

impl Filter {
    /// Returns whether the filter leaves out samples of a selected source.
    #[must_use]
    pub fn narrows(&self) -> bool {
        let narrows = self.processes.is_some() || !self.parallelism.is_empty();
        narrows || !self.slice.is_whole() || !self.modules.is_empty() || !self.symbols.is_empty()
    }

    /// Returns whether samples of `source` in `process` are selected, as far as these say.
    #[must_use]
    pub fn selects(&self, source: impl Into<SampledSource>, process: ProcessKey) -> bool {
        self.selects_source(source) && self.processes.as_ref().is_none_or(|wanted| wanted.contains(&process))
    }

    /// Returns whether records of losses, throttling and sleep of `source` are selected. Those of
    /// [`ALL_EVENTS`] always are.
    #[must_use]
    pub fn selects_source(&self, source: impl Into<SampledSource>) -> bool {
        let SampledSource { event, core_type } = source.into();
        let is_event = event == ALL_EVENTS || self.events.as_ref().is_none_or(|wanted| wanted.contains(&event));
        is_event && self.core_type.is_none_or(|wanted| wanted == core_type)
    }
}
