//! Reads of the counters of one processor, and sessions for Windows' thread profiling.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod at_random;
mod budgets;
mod kept;
mod read;
mod scale;
mod scene;
mod threads;
