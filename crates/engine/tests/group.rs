//! Reads of the counters of one processor, and sessions for Windows' thread profiling.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "group/at_random.rs"]
mod at_random;
#[path = "group/budgets.rs"]
mod budgets;
#[path = "group/kept.rs"]
mod kept;
#[path = "group/read.rs"]
mod read;
#[path = "group/scale.rs"]
mod scale;
#[path = "group/scene.rs"]
mod scene;
#[path = "group/threads.rs"]
mod threads;
