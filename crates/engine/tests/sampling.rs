//! Sampling: from the overflow in the model to the record that the client fetches.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::unreachable,
    reason = "helpers of tests fail as tests do"
)]

mod budgets;
mod conditions;
mod dead_entry;
mod foreign;
mod interrupts;
mod ledger;
mod life;
mod refusals;
mod reload;
mod scene;
mod sharing;
mod storms;
mod throttle;
mod time;
mod tracing;
mod unkind;
