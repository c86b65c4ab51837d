//! What is never in one sum: the samples of two sources, of two core types of a hybrid, and of two events of one source
//! that were sampled in user mode and in kernel mode (`-e X:u,X:k`).

use protocol::{AnySample, BRANCHES, Mode, modes};
use recording::{CoreTypeProcessors, RecordedEvent, RecordedSession};
use rustc_hash::{FxHashMap, FxHashSet};

/// A source on the processors of a core type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampledSource {
    /// KPROFILE_SOURCE.
    pub source: u32,
    /// [Core type](CoreTypeProcessors::core_type), or 0 on a machine that is not a hybrid and for
    /// [`BRANCHES`], which mean the same everywhere.
    pub core_type: u32,
    /// The mode of the samples, if the recording has an event of the source for user mode and another one for kernel
    /// mode. `None` otherwise, and for records of losses and pauses, which concern both.
    pub mode: Option<Mode>,
}

impl SampledSource {
    /// Returns whether a record of losses or pauses of `other` concerns this source.
    #[must_use]
    pub fn is_concerned_by(self, other: Self) -> bool {
        (other.source, other.core_type) == (self.source, self.core_type)
            && (other.mode.is_none() || other.mode == self.mode)
    }
}

impl From<u32> for SampledSource {
    fn from(source: u32) -> Self {
        Self { source, core_type: 0, mode: None }
    }
}

/// The sources of a recording.
#[derive(Debug, Clone, Default)]
pub(crate) struct SampledSources {
    /// Core types by processor.
    core_types: FxHashMap<u32, u32>,
    /// The sources with an event for each mode.
    by_mode: FxHashSet<u32>,
}

impl SampledSources {
    pub(crate) fn new(session: &RecordedSession) -> Self {
        let of = |one: &CoreTypeProcessors| {
            let core_type = one.core_type;
            one.processors.iter().map(move |processor| (*processor, core_type)).collect::<Vec<_>>()
        };
        let has = |source, wanted| {
            session.events.iter().any(|event| event.source == source && event.modes & modes::BOTH == wanted)
        };
        let sources = session.events.iter().map(|event| event.source);
        let is_split =
            |source: &u32| has(*source, modes::USER) && has(*source, modes::KERNEL) && !has(*source, modes::BOTH);
        Self {
            core_types: session.core_types.iter().flat_map(of).collect(),
            by_mode: sources.filter(is_split).collect(),
        }
    }

    /// Returns whether there are core types.
    pub(crate) fn depend_on_processors(&self) -> bool {
        !self.core_types.is_empty()
    }

    /// Returns the source on the core type of a processor, for both modes.
    #[inline]
    pub(crate) fn source_on(&self, source: u32, processor: u32) -> SampledSource {
        let core_type = if source == BRANCHES { None } else { self.core_types.get(&processor) };
        SampledSource { source, core_type: core_type.copied().unwrap_or_default(), mode: None }
    }

    /// Returns the source of a sample.
    #[inline]
    pub(crate) fn source_of(&self, sample: &AnySample) -> SampledSource {
        let mode = Some(sample.mode).filter(|_| self.by_mode.contains(&sample.event));
        SampledSource { mode, ..self.source_on(sample.event, sample.processor) }
    }

    /// Returns the source of an event on a processor.
    pub(crate) fn source_of_event(&self, event: &RecordedEvent, processor: u32) -> SampledSource {
        let mode = if event.modes & modes::BOTH == modes::KERNEL { Mode::Kernel } else { Mode::User };
        let mode = Some(mode).filter(|_| self.by_mode.contains(&event.source));
        SampledSource { mode, ..self.source_on(event.source, processor) }
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
        let sources = SampledSources { core_types, ..SampledSources::default() };
        for (processor, core_type) in [(0, 0x40), (1, 0x20), (2, 0x40), (3, 0)] {
            assert_eq!(sources.source_on(5, processor), SampledSource { source: 5, core_type, mode: None });
            assert_eq!(sources.source_on(BRANCHES, processor), BRANCHES.into());
            assert_eq!(SampledSources::default().source_on(5, processor), 5.into());
        }
    }

    #[test]
    fn a_loss_concerns_the_sources_that_it_does_not_exclude() {
        let of = |source, mode| SampledSource { source, core_type: 0, mode };
        let [user, kernel] = [Mode::User, Mode::Kernel].map(Some);
        for (source, loss, wanted) in [
            (of(5, user), of(5, None), true),
            (of(5, user), of(5, user), true),
            (of(5, user), of(5, kernel), false),
            (of(5, user), of(6, None), false),
            (of(5, None), of(5, None), true),
            (of(5, user), SampledSource { core_type: 1, ..of(5, None) }, false),
        ] {
            assert_eq!(source.is_concerned_by(loss), wanted, "{source:?} {loss:?}");
        }
    }

    #[test]
    fn a_qualified_name_has_the_core_type_in_front() {
        assert_eq!(qualified("TotalCycles", "cpu_core"), "cpu_core/TotalCycles/");
        assert_eq!(qualified("cpu/event=0xd1,umask=0x20/", "cpu_atom"), "cpu_atom/event=0xd1,umask=0x20/");
    }
}
