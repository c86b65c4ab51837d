//! Tables that are generated from facts: those of events, and those of the counters of events.

#![forbid(unsafe_code)]
#![allow(clippy::missing_errors_doc, clippy::must_use_candidate, reason = "only the programs of xtask use it")]

pub mod constraints;
pub mod events;
mod table;
