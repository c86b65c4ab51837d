//! Which samples are wanted.

use std::collections::BTreeSet;

/// A choice among samples; the default takes all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those of this source alone.
    pub source: Option<u32>,
    /// Those in these processes alone.
    pub processes: Option<BTreeSet<u32>>,
}

impl Filter {
    /// Whether samples of `source` in `process` are wanted.
    #[must_use]
    pub fn takes(&self, source: u32, process: u32) -> bool {
        self.takes_source(source) && self.processes.as_ref().is_none_or(|wanted| wanted.contains(&process))
    }

    /// Whether what befell `source` is wanted; what befell [`ALL_SOURCES`](protocol::ALL_SOURCES) always is.
    #[must_use]
    pub fn takes_source(&self, source: u32) -> bool {
        source == protocol::ALL_SOURCES || self.source.is_none_or(|wanted| wanted == source)
    }
}
