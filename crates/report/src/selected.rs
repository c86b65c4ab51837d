//! Which records of a recording a filter selects, by the names of their modules and symbols too.

use std::io;
use std::ops::RangeInclusive;

use protocol::Record;
use recording::{Reader, StackId};

use crate::filter::Filter;
use crate::input::{Blocks, Input};
use crate::locations::SampleLocation;
use crate::pattern::NamePattern;
use crate::read::{Contents, ExportError, each_of};
use crate::symbol_index::SymbolIndex;

impl Filter {
    /// Returns whether samples at `location`, which are in the [slice](Self::slice), are selected.
    #[must_use]
    pub fn selects_location(&self, location: &SampleLocation, symbol_index: &SymbolIndex) -> bool {
        let is_parallelism = |wanted: &RangeInclusive<u32>| wanted.contains(&location.parallelism);
        self.selects(location.sampled_source(), location.process)
            && (self.parallelism.is_empty() || self.parallelism.iter().any(is_parallelism))
            && self.selects_names(location, symbol_index)
    }

    /// Returns whether the module and the symbol at `location` are selected.
    #[must_use]
    pub fn selects_names(&self, location: &SampleLocation, symbol_index: &SymbolIndex) -> bool {
        let any = |patterns: &[NamePattern], matches: &dyn Fn(&NamePattern) -> bool| {
            patterns.is_empty() || patterns.iter().any(matches)
        };
        any(&self.modules, &|pattern| pattern.matches_file(symbol_index.module(location)))
            && any(&self.symbols, &|pattern| symbol_index.names(location).flatten().any(|name| pattern.matches(&name)))
    }

    /// Returns whether a single record is selected. Records of losses, throttling and sleep have no process, thread,
    /// module or symbol: they are selected by their source, processor and time.
    #[must_use]
    pub fn selects_record(&self, record: &Record, contents: &Contents, symbol_index: &SymbolIndex) -> bool {
        let sampled = contents.sample_counts.source_on(record.event(), record.processor());
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

/// Passes every record that `filter` selects and its call stack to `each` in the order of the file, up to the first
/// damaged block. [`for_each_in_order`](crate::time_order::for_each_in_order) has the order of time.
pub(crate) fn for_each_selected(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: &mut dyn Input,
    mut each: impl FnMut(&Record, StackId) -> io::Result<()>,
) -> Result<(), ExportError> {
    each_of(within(Reader::new(input)?, contents, filter), |record, stack| {
        if filter.selects_record(record, contents, symbol_index) { each(record, stack) } else { Ok(()) }
    })
}

/// Leaves out the blocks in which `filter` selects nothing by time.
pub(crate) fn within<'a>(blocks: Blocks<'a>, contents: &Contents, filter: &Filter) -> Blocks<'a> {
    // A block of another time could be the damaged one.
    match (&filter.slice.time, &contents.damage) {
        (Some(time), None) => blocks.within(time.start..=time.end.saturating_sub(1)),
        _ => blocks,
    }
}
