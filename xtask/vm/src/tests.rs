//! Tests of the whole command against a stand-in for the guest, and of the transports against stand-ins for their
//! programs.

mod run;
mod stand_in;
#[cfg(unix)]
mod transports;
