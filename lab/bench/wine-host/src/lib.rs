//! lab.dll: processors with a PMU, and stand-ins for the kernel functions that Wine lacks, for an unmodified driver.
//!
//! shim.sys loads this library into the process in which Wine runs drivers. When the loader maps a driver, the lab
//! replaces its imports and its cpuid instructions before its first instruction runs. The file on disk does not change.
//!
//! | To find | look in |
//! |---|---|
//! | the start and stop of the lab | `control/entry.rs` |
//! | the commands of a test, and their answers | crate `bench-protocol`; `control/server.rs`, `control/answer.rs` |
//! | the loading of a driver | `loader/driver_load.rs`; `loader/pe.rs` and `cpu/instruction_scan.rs` read its image; its end: `kernel/driver_end.rs`, `kernel/remains.rs` |
//! | the list of replaced imports | `loader/imports.rs` |
//! | the state of the lab, from one root | `state/machine.rs` |
//! | injected failures | `fault_injection.rs` |
//! | cpuid, rdmsr, wrmsr, rdpmc, CR4 | `kernel/exceptions.rs`, `kernel/instructions.rs`; the APIC's registers: `cpu/apic.rs`, `cpu/mmio.rs` |
//! | the processors, their events and branches | `cpu/processor.rs`, `cpu/processors.rs`, `cpu/clock.rs`, `cpu/branches.rs` |
//! | the memory that a Debug Store accesses | `kernel/ds_memory.rs`; control areas: `kernel/control_areas.rs` |
//! | the processor of a thread | `cpu/affinity.rs`, `kernel/processor_numbers.rs`, `kernel/group_affinity.rs` |
//! | the hot-add of processors | `kernel/processor_change.rs` |
//! | system information | `kernel/system_information.rs`, `kernel/version.rs` |
//! | sleep and its notification | `kernel/power.rs`, `kernel/callbacks.rs`, `kernel/time.rs` |
//! | IRQL | `kernel/irql.rs`; the locks of a processor: `cpu/fair_lock.rs` |
//! | DPCs and timers | `kernel/dpc.rs`, `kernel/timer.rs`; queues: `state/dpc_queues.rs`, `state/timers.rs`; their threads: `kernel/deferred.rs`; their stack: `kernel/dispatcher_stack.rs` |
//! | the profile interrupt | `kernel/interrupt.rs`; its handler: `kernel/hal.rs`; at a chosen instruction: `kernel/stepping.rs`, `kernel/step_stops.rs`; the interrupted code: `cpu/interrupt_sites.rs`, `kernel/current_ids.rs` |
//! | hardware counters for thread profiling | `kernel/hardware_counters.rs` |
//! | the threads of programs on the processors | `kernel/threads.rs`, `state/threads.rs`; crate `scheduler` |
//! | requests: dispatch; cancel, completion | `kernel/call_driver.rs`; `kernel/requests.rs`, `state/irp_tracker.rs` |
//! | a cancel at the worst moment | `kernel/cancel_race.rs`, `cpu/xchg.rs` |
//! | devices, work items, system threads | `kernel/devices.rs`, `kernel/work_items.rs`, `kernel/system_threads.rs` |
//!
//! One static, `MACHINE`, owns the state that the foreign callbacks share. `state` declares that state and uses the
//! types of `cpu`; the functions that the driver or Wine call are in `kernel`, `loader` and `control`. Other statics:
//!
//! - thread-locals, which belong to a thread of Windows and not to the machine;
//! - `HalDispatchTable`, because a driver imports the address of the table itself;
//! - the frequency of the time-stamp counter in `nt.rs`, which is measured once and never changes.
//!
//! Imports go one way: `control` uses `loader`, `loader` uses `kernel`, `kernel` uses `state` and `cpu`. No files
//! import each other in a circle, which a test of xtask holds. Modules that call no Windows function are built and
//! tested on every system.

#[cfg(windows)]
mod control;
pub mod cpu;
pub mod fault_injection;
pub mod kernel;
pub mod loader;
mod lock;
#[cfg(windows)]
mod nt;
pub mod state;
#[cfg(windows)]
mod violation;
