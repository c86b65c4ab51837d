//! Core types of a hybrid: samples of two core types are never in one sum.

use protocol::BRANCHES;
use recording::CoreTypeProcessors;
use rustc_hash::FxHashMap;

/// A source on the processors of a core type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SampledSource {
    /// KPROFILE_SOURCE.
    pub source: u32,
    /// [Core type](CoreTypeProcessors::core_type), or 0 on a machine that is not a hybrid and for
    /// [`BRANCHES`], which mean the same everywhere.
    pub core_type: u32,
}

impl From<u32> for SampledSource {
    fn from(source: u32) -> Self {
        Self { source, core_type: 0 }
    }
}

/// Core types by processor.
#[derive(Debug, Clone, Default)]
pub(crate) struct CoreTypes(FxHashMap<u32, u32>);

impl CoreTypes {
    pub(crate) fn new(core_types: &[CoreTypeProcessors]) -> Self {
        let of = |one: &CoreTypeProcessors| {
            let core_type = one.core_type;
            one.processors.iter().map(move |processor| (*processor, core_type)).collect::<Vec<_>>()
        };
        Self(core_types.iter().flat_map(of).collect())
    }

    /// Returns the source on the core type of a processor.
    pub(crate) fn source_on(&self, source: u32, processor: u32) -> SampledSource {
        let core_type = if source == BRANCHES { None } else { self.0.get(&processor) };
        SampledSource { source, core_type: core_type.copied().unwrap_or_default() }
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
        let of = |core_type, processors| CoreTypeProcessors { core_type, name: String::new(), processors };
        let core_types = CoreTypes::new(&[of(0x40, vec![0, 2]), of(0x20, vec![1])]);
        for (processor, core_type) in [(0, 0x40), (1, 0x20), (2, 0x40), (3, 0)] {
            assert_eq!(core_types.source_on(5, processor), SampledSource { source: 5, core_type });
            assert_eq!(core_types.source_on(BRANCHES, processor), BRANCHES.into());
            assert_eq!(CoreTypes::default().source_on(5, processor), 5.into());
        }
    }

    #[test]
    fn a_qualified_name_has_the_core_type_in_front() {
        assert_eq!(qualified("TotalCycles", "cpu_core"), "cpu_core/TotalCycles/");
        assert_eq!(qualified("cpu/event=0xd1,umask=0x20/", "cpu_atom"), "cpu_atom/event=0xd1,umask=0x20/");
    }
}
