//! A recording as the verbs show it: what is read of it, what the options select, and its rows.

pub mod aggregate;
pub mod branch_profile;
pub mod calls;
pub mod load;
pub mod losses;
pub mod open;
pub mod recorders;
pub mod selection;
pub mod summary;
