//! Register writes of other programs during a session: every result is right or marked as disturbed.

#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "disturbed/at_random.rs"]
mod at_random;
#[path = "disturbed/each.rs"]
mod each;
#[path = "disturbed/scene.rs"]
mod scene;
