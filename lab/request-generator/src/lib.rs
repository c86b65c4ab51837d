//! Random requests to the driver, and checks of its replies. For fuzzers: nothing here sends a request.
//!
//! What a [`Generator`] does is a function of its seed and of the [`Machine`], never of a reply. A request names a
//! session by a [`SessionPick`], which the fuzzer resolves to a number when it sends the request.

#![forbid(unsafe_code)]

mod change;
mod generator;
mod machine;
mod reply;
mod start;
mod storm;

pub use generator::{Generator, HandleKind, Request, SLOTS, SessionAt, SessionPick, Step};
pub use machine::{Machine, SourceLimits};
pub use reply::{ReplyFacts, check_reply};
pub use storm::{CodeCounts, Restrictions, StormPlan, StormReport};
