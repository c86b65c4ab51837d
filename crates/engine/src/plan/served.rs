//! How each event of a session is served on a processor.

use pmu::placement::Wanted;
use pmu::state::CounterSet;

/// How an event is served on a processor.
pub(super) enum Served {
    /// By measured time at this interval; also for events that no longer run.
    Time(u32),
    /// By the Branch Trace Store.
    Branches,
    /// By a counter of another session.
    Shared(u8),
    /// Not at all: the processor has another core type.
    Elsewhere,
    /// By a counter of its own.
    Own {
        /// What is placed, on the counters that the client allows.
        wanted: Wanted,
        /// The counters that count it.
        counters: CounterSet,
        /// Target frequency in samples per second, or 0.
        frequency: u32,
    },
}
