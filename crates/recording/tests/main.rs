//! Recordings, as they are written, limited and damaged. One program, because each is linked anew.

mod damage;
mod parts;
mod round_trip;
mod support;
