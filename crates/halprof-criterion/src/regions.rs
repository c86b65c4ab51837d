//! What the measurement needs from a group of the library.

use std::time::Duration;

use halprof::{Error, Quality, ThreadGroup};

/// Counts regions of one event.
pub trait Regions {
    /// Begins a region.
    fn begin(&mut self) -> Result<(), Error>;
    /// Ends it.
    fn end(&mut self) -> Result<Region, Error>;
}

/// The count of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Number of events.
    pub count: u64,
    /// Why the count is not exact.
    pub disturbance: Option<String>,
    /// Time from begin to end.
    pub time: Duration,
}

impl Regions for ThreadGroup {
    fn begin(&mut self) -> Result<(), Error> {
        self.begin()
    }

    fn end(&mut self) -> Result<Region, Error> {
        let counts = self.end()?;
        let disturbance = match &counts.quality {
            Quality::Virtualized { .. } | Quality::Undisturbed => None,
            other => Some(other.to_string()),
        };
        let count = counts.iter().next().map(|(_, count)| count).unwrap_or_default();
        Ok(Region { count, disturbance, time: counts.time_enabled })
    }
}
