//! What is never in one sum: the samples of two events, and of two core types of a hybrid.

use protocol::{AnySample, BRANCHES};
use recording::{CoreTypeProcessors, RecordedSession};
use rustc_hash::FxHashMap;

/// An event of the recording on the processors of a core type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampledSource {
    /// Index of the event in [`RecordedSession::events`].
    pub event: u32,
    /// [Core type](CoreTypeProcessors::core_type), or 0 on a machine that is not a hybrid and for
    /// [`BRANCHES`], which mean the same everywhere.
    pub core_type: u32,
}

impl From<u32> for SampledSource {
    fn from(event: u32) -> Self {
        Self { event, core_type: 0 }
    }
}

/// The sources of a recording.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampledSources {
    /// Core types by processor.
    core_types: FxHashMap<u32, u32>,
    /// Indexes of the events that are branches.
    branches: Vec<u32>,
}

impl SampledSources {
    pub(crate) fn new(session: &RecordedSession) -> Self {
        let of = |one: &CoreTypeProcessors| {
            let core_type = one.core_type;
            one.processors.iter().map(move |processor| (*processor, core_type)).collect::<Vec<_>>()
        };
        let events = (0..).zip(&session.events);
        Self {
            core_types: session.core_types.iter().flat_map(of).collect(),
            branches: events.filter(|(_, event)| event.source == BRANCHES).map(|(index, _)| index).collect(),
        }
    }

    /// Returns whether there are core types.
    pub(crate) fn depend_on_processors(&self) -> bool {
        !self.core_types.is_empty()
    }

    /// Returns the source of an event on the core type of a processor.
    #[inline]
    pub(crate) fn source_on(&self, event: u32, processor: u32) -> SampledSource {
        let core_type = self.core_types.get(&processor).filter(|_| !self.branches.contains(&event));
        SampledSource { event, core_type: core_type.copied().unwrap_or_default() }
    }

    /// Returns the source of a sample.
    #[inline]
    pub(crate) fn source_of(&self, sample: &AnySample) -> SampledSource {
        self.source_on(sample.event, sample.processor)
    }
}

/// Returns the name of a source on a core type, as perf writes it: `cpu_core/TotalCycles/`, `cpu_core/event=0xd1/`.
#[must_use]
pub fn qualified(source: &str, core_type: &str) -> String {
    match source.strip_prefix("cpu/") {
        Some(terms) => format!("{core_type}/{terms}"),
        None => format!("{core_type}/{source}/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_has_the_core_type_of_its_processor() {
        let core_types = [(0, 0x40), (1, 0x20), (2, 0x40)].into_iter().collect();
        let sources = SampledSources { core_types, branches: vec![2] };
        for (processor, core_type) in [(0, 0x40), (1, 0x20), (2, 0x40), (3, 0)] {
            assert_eq!(sources.source_on(5, processor), SampledSource { event: 5, core_type });
            assert_eq!(sources.source_on(2, processor), 2.into());
            assert_eq!(SampledSources::default().source_on(5, processor), 5.into());
        }
    }

    #[test]
    fn a_qualified_name_has_the_core_type_in_front() {
        assert_eq!(qualified("TotalCycles", "cpu_core"), "cpu_core/TotalCycles/");
        assert_eq!(qualified("cpu/event=0xd1,umask=0x20/", "cpu_atom"), "cpu_atom/event=0xd1,umask=0x20/");
    }
}
