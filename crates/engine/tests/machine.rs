//! The machine below the sessions: ownership of counters, sleep, added processors, refused calls.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod added;
mod concerned;
mod faults;
mod local_apic;
mod ownership;
mod scale;
mod scene;
mod sleep;
