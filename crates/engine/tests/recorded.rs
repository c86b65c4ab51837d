//! Hardware recording: from the records that the model writes to memory to those that the client fetches, in each
//! interrupt mode.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]
#![expect(clippy::duplicate_mod, reason = "the same tests, in each interrupt mode")]

mod edge;
mod ledger;
mod lost;
mod raised;
pub mod scene;
