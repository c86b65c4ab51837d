//! Selection of samples.

use std::collections::BTreeSet;

use protocol::Record;

use crate::locations::SampleLocation;
use crate::pattern::NamePattern;
use crate::process_keys::ProcessKey;
use crate::read::Contents;
use crate::sampled_sources::SampledSource;
use crate::slice::Slice;
use crate::symbol_index::SymbolIndex;

/// A selection of samples; the default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Selects only samples of this source.
    pub source: Option<u32>,
    /// Selects only samples of this [core type](SampledSource::core_type).
    pub core_type: Option<u32>,
    /// Selects only samples in these processes.
    pub processes: Option<BTreeSet<ProcessKey>>,
    /// Selects processors, threads and time. [`Contents::read_slice`] counts only the samples of a slice.
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
        self.processes.is_some() || !self.slice.is_whole() || !self.modules.is_empty() || !self.symbols.is_empty()
    }

    /// Returns whether samples of `source` in `process` are selected, as far as these say.
    #[must_use]
    pub fn selects(&self, source: impl Into<SampledSource>, process: ProcessKey) -> bool {
        self.selects_source(source) && self.processes.as_ref().is_none_or(|wanted| wanted.contains(&process))
    }

    /// Returns whether records of losses, throttling and sleep of `source` are selected. Those of
    /// [`ALL_SOURCES`](protocol::ALL_SOURCES) always are.
    #[must_use]
    pub fn selects_source(&self, source: impl Into<SampledSource>) -> bool {
        let SampledSource { source, core_type, .. } = source.into();
        let is_source = source == protocol::ALL_SOURCES || self.source.is_none_or(|wanted| wanted == source);
        is_source && self.core_type.is_none_or(|wanted| wanted == core_type)
    }

    /// Returns whether samples at `location`, which are in the [slice](Self::slice), are selected.
    #[must_use]
    pub fn selects_location(&self, location: &SampleLocation, symbol_index: &SymbolIndex) -> bool {
        self.selects(location.sampled_source(), location.process) && self.selects_names(location, symbol_index)
    }

    /// Returns whether the module and the symbol at `location` are selected.
    #[must_use]
    pub fn selects_names(&self, location: &SampleLocation, symbol_index: &SymbolIndex) -> bool {
        let any = |patterns: &[NamePattern], matches: &dyn Fn(&NamePattern) -> bool| {
            patterns.is_empty() || patterns.iter().any(matches)
        };
        any(&self.modules, &|pattern| pattern.matches_file(symbol_index.module(location)))
            && any(&self.symbols, &|pattern| symbol_index.plain_names(location).any(|name| pattern.matches(&name)))
    }

    /// Returns whether a single record is selected. Records of losses, throttling and sleep have no process, thread,
    /// module or symbol: they are selected by their source, processor and time.
    #[must_use]
    pub fn selects_record(&self, record: &Record, contents: &Contents, symbol_index: &SymbolIndex) -> bool {
        let sampled = contents.sample_counts.source_on(record.source(), record.processor());
        match record.sample() {
            Some(sample) => {
                let location = contents.processes.location(&sample);
                self.slice.selects_sample(&sample)
                    && self.selects(sampled, location.process)
                    && self.selects_names(&location, symbol_index)
            }
            None => self.slice.selects(record.processor(), record.time()) && self.selects_source(sampled),
        }
    }
}
