//! client.exe and halprof.sys as they ship, under Wine, against the model.
//!
//! One test at a time (`--test-threads=1`): there is one prefix.

#![cfg(not(windows))]
#![expect(clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "tests")]

mod added;
mod bad_input;
mod bench;
mod binary;
mod counts;
mod device;
mod faults;
mod handler;
mod identities;
mod inf;
mod life;
mod local_apic;
mod ownership;
mod power;
mod record;
mod sampling;
mod scene;
mod sources;
mod stand_ins;
mod teardown;
mod waiting;
