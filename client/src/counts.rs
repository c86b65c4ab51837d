//! What was counted: by event and processor, with its marks, and metrics of it.

pub mod disturbance;
mod event_count;
pub mod metric;
pub mod metrics;
pub mod movement;
pub mod record_counts;
pub mod share;
pub mod totals;

pub use self::event_count::{EventCount, asleep, by_event, counts_table, errata_note, mark_notes, turns_note};
