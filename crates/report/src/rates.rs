//! Events over time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::filter::Filter;
use crate::input::Input;
use crate::read::{Contents, ExportError};
use crate::sampled_sources::SampledSource;
use crate::selected::for_each_selected;
use crate::slice::RecordedTime;
use crate::symbol_index::SymbolIndex;

/// The events of each source on each processor, in parts of equal time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rates {
    /// Duration of a part.
    pub part: Duration,
    /// Events in each part from the earliest record on, by source and processor. A sample counts with its events.
    pub events: BTreeMap<(SampledSource, u32), Vec<u64>>,
}

/// Counts the events of the samples that `filter` selects in `parts` parts of `time`. `input` is the recording from
/// which `contents` was read.
///
/// # Errors
/// If the recording cannot be read again.
pub fn rates(
    contents: &Contents,
    symbol_index: &SymbolIndex,
    filter: &Filter,
    input: &mut dyn Input,
    time: RecordedTime,
    parts: usize,
) -> Result<Rates, ExportError> {
    // The last record is inside the last part.
    let units = ((time.last - time.first) / parts.max(1) as u64).saturating_add(1);
    let mut events: BTreeMap<(SampledSource, u32), Vec<u64>> = BTreeMap::new();
    for_each_selected(contents, symbol_index, filter, input, |record, _| {
        let Some(sample) = record.sample() else { return Ok(()) };
        let source = contents.sample_counts.source_of(&sample);
        let counts = events.entry((source, sample.processor)).or_insert_with(|| vec![0; parts]);
        let part = usize::try_from(sample.time.saturating_sub(time.first) / units).unwrap_or(usize::MAX);
        if let Some(count) = counts.get_mut(part) {
            *count = count.saturating_add(sample.events);
        }
        Ok(())
    })?;
    Ok(Rates { part: Duration::from_nanos(contents.duration(units)), events })
}
