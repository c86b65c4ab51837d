//! Sampling: from the overflow in the model to the record that the client fetches.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::unreachable,
    reason = "helpers of tests fail as tests do"
)]

#[path = "sampling/budgets.rs"]
mod budgets;
#[path = "sampling/foreign.rs"]
mod foreign;
#[path = "sampling/interrupts.rs"]
mod interrupts;
#[path = "sampling/ledger.rs"]
mod ledger;
#[path = "sampling/life.rs"]
mod life;
#[path = "sampling/refusals.rs"]
mod refusals;
#[path = "sampling/scene.rs"]
mod scene;
#[path = "sampling/sharing.rs"]
mod sharing;
#[path = "sampling/storms.rs"]
mod storms;
#[path = "sampling/throttle.rs"]
mod throttle;
#[path = "sampling/time.rs"]
mod time;
#[path = "sampling/tracing.rs"]
mod tracing;
#[path = "sampling/unkind.rs"]
mod unkind;
