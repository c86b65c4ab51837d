//! Selection of samples.

use std::collections::BTreeSet;

use crate::core_types::SampledSource;

/// A selection of samples; the default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Selects only samples of this source.
    pub source: Option<u32>,
    /// Selects only samples of this [core type](SampledSource::core_type).
    pub core_type: Option<u32>,
    /// Selects only samples in these processes.
    pub processes: Option<BTreeSet<u32>>,
}

impl Filter {
    /// Returns whether samples of `source` in `process` are selected.
    #[must_use]
    pub fn selects(&self, source: impl Into<SampledSource>, process: u32) -> bool {
        self.selects_source(source) && self.processes.as_ref().is_none_or(|wanted| wanted.contains(&process))
    }

    /// Returns whether records of losses, throttling and sleep of `source` are selected. Those of
    /// [`ALL_SOURCES`](protocol::ALL_SOURCES) always are.
    #[must_use]
    pub fn selects_source(&self, source: impl Into<SampledSource>) -> bool {
        let SampledSource { source, core_type } = source.into();
        let is_source = source == protocol::ALL_SOURCES || self.source.is_none_or(|wanted| wanted == source);
        is_source && self.core_type.is_none_or(|wanted| wanted == core_type)
    }
}
