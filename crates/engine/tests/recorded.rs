//! Hardware recording: from the records that the model writes to memory to those that the client fetches.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "recorded/areas.rs"]
mod areas;
#[path = "recorded/branches.rs"]
mod branches;
#[path = "recorded/budgets.rs"]
mod budgets;
#[path = "recorded/ledger.rs"]
mod ledger;
#[path = "recorded/life.rs"]
mod life;
#[path = "recorded/precise.rs"]
mod precise;
#[path = "recorded/refusals.rs"]
mod refusals;
#[path = "recorded/scene.rs"]
mod scene;
