//! Recordings, as they are written, limited and damaged. One program, because each is linked anew.

#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests fail by panicking")]

mod damage;
mod parts;
mod round_trip;
mod support;
