//! From readings of a session to counts: what was counted between two readings, scaled to all the time where events
//! took turns, with its error, and summed up over processors and restarts.
//!
//! [`CpuGroup`](crate::CpuGroup), the client's `stat` and the agent count with these.

mod difference;
mod names;
mod numbers;
mod scaled;
mod times;
mod totals;

pub use self::difference::difference;
pub use self::names::EventNames;
pub use self::numbers::nearest;
pub use self::scaled::Scaled;
pub use self::times::Times;
pub use self::totals::{Key, Total, Totals};

#[cfg(test)]
use protocol::{CountRecord, Event};

/// Returns the record of an event that had a counter all the time.
#[cfg(test)]
fn count(processor: u32, count: u64, enabled: u64) -> CountRecord {
    let none = zerocopy::FromZeros::new_zeroed();
    CountRecord { event: Event::of(2), processor, count, enabled, running: enabled, ..none }
}
