//! lab.dll: a processor with a PMU, and the kernel functions that Wine lacks, for a driver that knows nothing of it.
//!
//! shim.sys loads this library into the process in which Wine runs drivers. When the loader maps a driver, its imports
//! and its cpuid instructions are taken over before its first instruction runs; the file on disk stays as it is.
//!
//! | To find | look in |
//! |---|---|
//! | what is done to a driver that is loaded | `image.rs`, and `pe.rs` and `code.rs` for what it reads |
//! | which kernel functions are served | `served.rs` |
//! | calls that fail because a test says so | `failing.rs`, `countdown.rs` |
//! | cpuid, rdmsr, wrmsr, rdpmc | `trap.rs`; the APIC's registers in memory: `apic.rs`, `mmio.rs` |
//! | the processors, and what makes their events and branches happen | `processor.rs`, `clock.rs`, `branches.rs` |
//! | the memory to which processors write by themselves | `watched.rs`; the areas that Windows gives for it: `control_areas.rs` |
//! | which processor a thread is on | `seat.rs`, `numbers.rs`, `affinity.rs` |
//! | processors that are added | `processor_change.rs` |
//! | what Windows tells of itself | `system_information.rs` |
//! | sleep, and who is told of it | `power.rs`, `callbacks.rs`, `time.rs` |
//! | IRQL | `level.rs`; who runs while interrupts are masked: `gate.rs` |
//! | DPCs and timers | `dpc.rs`, `timer.rs`; their account: `dpcs.rs`, `timers.rs`; where they run: `deferred.rs` |
//! | the profile interrupt | `interrupt.rs`; who registered it: `hal.rs`; what it interrupts: `scene.rs`, `who.rs` |
//! | requests: dispatched, cancelled, completed | `requests.rs`, and `fates.rs` for its account |
//! | a cancel at the worst moment | `cancel_race.rs`, `exchange.rs` |
//! | devices, work items, threads of drivers | `devices.rs`, `work_items.rs`, `system_threads.rs` |
//! | what a test can ask | crate `wire`; its answers: `server.rs`, `answer.rs` |
//!
//! What has no Windows in it is built, and tested, on every system.

#[cfg(windows)]
mod control;
pub mod cpu;
pub mod fault_injection;
pub mod kernel;
pub mod loader;
mod lock;
#[cfg(windows)]
mod nt;
#[cfg(windows)]
mod violation;
