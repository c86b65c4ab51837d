//! Events with an extra register: off-core response, load latency, front end.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail as tests do")]
#![allow(clippy::large_types_passed_by_value, reason = "a header is made for each call")]

#[path = "extra/at_random.rs"]
mod at_random;
#[path = "extra/budgets.rs"]
mod budgets;
#[path = "extra/refusals.rs"]
mod refusals;
#[path = "extra/scene.rs"]
mod scene;
#[path = "extra/shared.rs"]
mod shared;
