//! The processors that a request addresses.

use alloc::vec::Vec;

use pmu::ProcessorIndex;
use protocol::{ErrorCode, ProcessorSet};

use crate::reply::{Refusal, invalid};
use crate::try_vec::try_collect;

/// Returns the set of these processors. Windows numbers them up to 2,047, the last one that a set can have.
pub fn set_of(processors: impl IntoIterator<Item = ProcessorIndex>) -> ProcessorSet {
    let mut set = ProcessorSet::EMPTY;
    insert_all(&mut set, processors);
    set
}

/// Adds these processors to a set.
pub fn insert_all(set: &mut ProcessorSet, processors: impl IntoIterator<Item = ProcessorIndex>) {
    for processor in processors {
        set.insert(processor.number());
    }
}

/// Returns the set of all of these processors. Never inlined: it has many callers.
#[inline(never)]
pub fn set_of_all(processors: &[ProcessorIndex]) -> ProcessorSet {
    set_of(processors.iter().copied())
}

/// Returns the requested processors in ascending order: all active ones, or those of the set, which must be active.
pub fn choose(wanted: &ProcessorSet, active: u32) -> Result<Vec<ProcessorIndex>, Refusal> {
    if wanted.is_empty() {
        let all = try_collect(ProcessorIndex::first(active), active as usize)?;
        return if all.is_empty() { Err(invalid(ErrorCode::NoProcessor, u64::from(active))) } else { Ok(all) };
    }
    let mut indices = wanted.iter().map(ProcessorIndex::new);
    if let Some(processor) = indices.find(|processor| processor.number() >= active) {
        return Err(invalid(ErrorCode::NoSuchProcessor, u64::from(active)).processor(processor));
    }
    try_collect(wanted.iter().map(ProcessorIndex::new), active as usize)
}
