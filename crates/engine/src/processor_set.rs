//! The processors that a request addresses.

use alloc::vec::Vec;

use pmu::ProcessorIndex;
use protocol::{ErrorCode, ProcessorSet};

use crate::reply::{Refusal, invalid};
use crate::try_vec::try_collect;

/// Returns the requested processors in ascending order: all active ones, or those of the set, which must be active.
pub fn choose(wanted: &ProcessorSet, active: u32) -> Result<Vec<ProcessorIndex>, Refusal> {
    let mut indices = wanted.iter().map(ProcessorIndex::new);
    if let Some(processor) = indices.find(|processor| processor.number() >= active) {
        return Err(invalid(ErrorCode::NoSuchProcessor, u64::from(active)).processor(processor));
    }
    let expected = active as usize;
    let chosen = if wanted.is_empty() {
        try_collect(ProcessorIndex::first(active), expected)?
    } else {
        try_collect(wanted.iter().map(ProcessorIndex::new), expected)?
    };
    if chosen.is_empty() { Err(invalid(ErrorCode::NoProcessor, u64::from(active))) } else { Ok(chosen) }
}
