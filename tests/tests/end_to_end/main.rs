//! client.exe and halprof.sys as they ship: under Wine with the model, and on Windows on the machine itself.
//!
//! The tests must run one at a time (`--test-threads=1`), because they share one Wine prefix or machine.

#![expect(clippy::expect_used, clippy::unwrap_used, reason = "tests")]
#![cfg_attr(not(windows), expect(clippy::indexing_slicing, clippy::panic, reason = "tests"))]

#[cfg(not(windows))]
mod accesses;
#[cfg(not(windows))]
mod added;
#[cfg(not(windows))]
mod agent;
#[cfg(not(windows))]
mod bad_input;
#[cfg(not(windows))]
mod bench;
#[cfg(not(windows))]
mod c_programs;
#[cfg(not(windows))]
mod conditions;
#[cfg(not(windows))]
mod counts;
#[cfg(not(windows))]
mod debug_store;
#[cfg(not(windows))]
mod device;
#[cfg(not(windows))]
mod extra;
#[cfg(not(windows))]
mod faults;
#[cfg(not(windows))]
mod generations;
#[cfg(not(windows))]
mod groups;
#[cfg(not(windows))]
mod guarded;
#[cfg(not(windows))]
mod hidden;
#[cfg(not(windows))]
mod hybrid;
#[cfg(not(windows))]
mod identities;
mod inf;
mod installing;
#[cfg(not(windows))]
mod interrupt_sites;
#[cfg(not(windows))]
mod interruptions;
#[cfg(not(windows))]
mod interrupts;
#[cfg(not(windows))]
mod intervals;
#[cfg(not(windows))]
mod last_branches;
#[cfg(not(windows))]
mod life;
#[cfg(not(windows))]
mod live;
#[cfg(not(windows))]
mod local_apic;
#[cfg(not(windows))]
mod metrics;
#[cfg(not(windows))]
mod movement;
#[cfg(not(windows))]
mod multiplexing;
#[cfg(not(windows))]
mod names;
#[cfg(not(windows))]
mod off_cpu;
#[cfg(not(windows))]
mod ops;
#[cfg(not(windows))]
mod own_hal;
#[cfg(not(windows))]
mod own_hal_samples;
#[cfg(not(windows))]
mod ownership;
mod package;
#[cfg(not(windows))]
mod power;
#[cfg(not(windows))]
mod record;
#[cfg(not(windows))]
mod sampling;
#[cfg(not(windows))]
mod selftest;
#[cfg(not(windows))]
mod shell;
mod skipped;
#[cfg(not(windows))]
mod sources;
#[cfg(not(windows))]
mod stacks;
#[cfg(not(windows))]
mod stand_ins;
#[cfg(not(windows))]
mod stepping;
#[cfg(not(windows))]
mod storms;
#[cfg(not(windows))]
mod tasks;
#[cfg(not(windows))]
mod teardown;
#[cfg(not(windows))]
mod threads;
#[cfg(not(windows))]
mod time;
#[cfg(not(windows))]
mod top;
#[cfg(not(windows))]
mod tracing;
#[cfg(not(windows))]
mod unwinding;
#[cfg(not(windows))]
mod waiting;
#[cfg(not(windows))]
mod workarounds;
