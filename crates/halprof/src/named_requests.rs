//! The requests of a group, and where it counts.

use protocol::{EventRequest, ProcessorSet};

use crate::error::Error;
use crate::group_error::GroupError;

/// An event of a group: its name, and the events of the request that count it.
#[derive(Debug, Clone)]
pub(crate) struct NamedRequests {
    pub(crate) name: String,
    pub(crate) requests: Vec<EventRequest>,
}

/// Returns the set of one CPU.
pub(crate) fn only(cpu: u32) -> Result<ProcessorSet, Error> {
    let mut set = ProcessorSet::EMPTY;
    if set.insert(cpu) { Ok(set) } else { Err(GroupError::NoCpu { cpu }.into()) }
}
