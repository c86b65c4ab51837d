//! Requests to the driver, random ones and those of [`SCENES`], and checks of its replies. Nothing here sends a
//! request.
//!
//! What a [`Generator`] does is a function of its seed and of the [`Machine`], never of a reply. A request names a
//! session by a [`SessionPick`], which the fuzzer resolves to a number when it sends the request.

#![forbid(unsafe_code)]

mod change;
mod draw;
mod generator;
mod machine;
mod reply;
mod request;
mod scenes;
mod start;
mod storm;

pub use generator::{Generator, HandleKind, SLOTS, Step};
pub use machine::{Machine, SourceLimits};
pub use reply::{ReplyFacts, check_reply};
pub use request::{Request, SessionAt, SessionPick};
pub use scenes::{ADDED, SCENE_INTERVAL, SCENES, Scene, SceneClient, count_and_sample, queries};
pub use storm::{CodeCounts, Restrictions, StormPlan, StormReport};
