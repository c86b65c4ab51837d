//! How each event of a session is served on a processor.

use pmu::placement::Wanted;
use pmu::state::CounterSet;

use crate::session::Place;

/// How an event is served on a processor.
pub(super) enum Served {
    /// By this; a counter is one of another session.
    By(Place),
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
