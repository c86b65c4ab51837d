//! What was counted: by event and processor, with its marks, and metrics of it.

pub mod condition;
pub mod count_metric;
pub mod cpuid;
pub mod descriptions;
pub mod disturbance;
pub mod encoding;
mod event_count;
pub mod event_list;
pub mod known_event;
pub mod movement;
pub mod names;
pub mod processor_identity;
pub mod processor_metrics;
pub mod record_counts;
pub mod requested_metrics;
pub mod requests;
pub mod share;
pub mod totals;

pub use self::event_count::{EventCount, asleep, by_event, counts_table, errata_note, mark_notes, turns_note};
