//! From readings of a session to counts: what was counted between two readings, scaled to all the time where events
//! took turns, with its error, and summed up over processors and restarts; and the share of it that samples find.
//!
//! [`CpuGroup`](crate::CpuGroup), the client's `stat` and the agent count with these.

mod difference;
mod names;
mod numbers;
mod sampled_share;
mod scaled;
mod times;
mod totals;

pub use self::difference::difference;
pub use self::names::EventNames;
pub use self::numbers::nearest;
pub use self::sampled_share::{SampleSum, SampledShare};
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

/// Returns a number below a limit. A generator whose seed names the run (Steele, Lea, Flood, "Fast splittable
/// pseudorandom number generators").
#[cfg(test)]
fn below(limit: u64, state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ (mixed >> 31)) % limit
}
