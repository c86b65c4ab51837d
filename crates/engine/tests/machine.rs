//! The machine below the sessions: ownership of counters, sleep, added processors, refused calls.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

#[path = "machine/added.rs"]
mod added;
#[path = "machine/concerned.rs"]
mod concerned;
#[path = "machine/faults.rs"]
mod faults;
#[path = "machine/local_apic.rs"]
mod local_apic;
#[path = "machine/ownership.rs"]
mod ownership;
#[path = "machine/scale.rs"]
mod scale;
#[path = "machine/scene.rs"]
mod scene;
#[path = "machine/sleep.rs"]
mod sleep;
