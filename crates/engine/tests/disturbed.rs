//! Register writes of other programs during a session: every result is right or marked as disturbed.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod at_random;
mod each;
mod scene;
