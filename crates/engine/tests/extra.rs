//! Events with an extra register: off-core response, load latency, front end.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests fail as tests do")]
#![allow(clippy::large_types_passed_by_value, reason = "a header is made for each call")]

mod asleep;
mod at_random;
mod budgets;
mod refusals;
mod scene;
mod shared;
