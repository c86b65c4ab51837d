//! What the running events of a session use beside counters.

use super::Session;
use crate::event::{EventFilter, Service};

impl Session {
    /// Returns the interval of the timers by which a running event is sampled, if there is such an event.
    pub(super) fn sampling_interval(&self) -> Option<u32> {
        self.events.iter().find_map(|event| match event.service {
            Service::Time { interval } if event.runs() && event.sampled => Some(interval),
            _ => None,
        })
    }

    /// Returns whether a running event is sampled by the performance monitor interrupt.
    pub fn uses_interrupt(&self) -> bool {
        self.events.iter().any(|event| event.runs() && event.needs_interrupt())
    }

    /// Returns whether the processors themselves record a running event.
    pub fn uses_debug_store(&self) -> bool {
        self.events.iter().any(|event| event.runs() && event.service.uses_debug_store())
    }

    /// Returns whether it records last branches.
    pub fn records_last_branches(&self) -> bool {
        self.last_branches.is_some() && self.has(EventFilter::ALL)
    }

    /// Returns whether it samples ops.
    pub fn uses_ibs(&self) -> bool {
        self.events.iter().any(|event| event.runs() && event.uses_ibs())
    }
}
