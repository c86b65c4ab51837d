//! An event of a session, and how it is served.

use pmu::state::{CounterSet, CounterState};
use protocol::ALL_SOURCES;

/// An event of a session, on all processors of the session.
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// KPROFILE_SOURCE.
    pub source: u32,
    /// [`modes`](protocol::modes).
    pub modes: u32,
    /// The event is sampled.
    pub sampled: bool,
    /// The counters that the client allows.
    pub within: CounterSet,
    /// How the event is served.
    pub service: Service,
    /// The event has not been stopped.
    pub running: bool,
}

/// How an event is served.
#[derive(Debug, Clone, Copy)]
pub enum Service {
    /// By the timer of the processor.
    Timer,
    /// By a counter.
    Counter {
        /// State of the counter, without the owner.
        state: CounterState,
        /// Samples per second to which the interval is adapted, or 0 for a constant interval.
        frequency: u32,
    },
    /// By the Branch Trace Store.
    Branches {
        /// Branches before an interrupt.
        before: u32,
    },
}

impl Service {
    /// Returns whether the processor itself records the event.
    pub const fn uses_debug_store(&self) -> bool {
        match self {
            Self::Timer => false,
            Self::Branches { .. } => true,
            Self::Counter { state, .. } => state.precise(),
        }
    }
}

impl Event {
    /// Returns whether the event runs and is of this source, or any with [`ALL_SOURCES`].
    pub const fn is_running(&self, source: u32) -> bool {
        self.running && (source == ALL_SOURCES || source == self.source)
    }
}
