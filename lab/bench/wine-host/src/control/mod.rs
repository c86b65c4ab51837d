//! Start and stop of the lab, and the commands of tests.

pub(crate) mod answer;
pub(crate) mod entry;
pub(crate) mod server;
pub(crate) mod threads;
