//! The state of the machine, without functions that the driver or Wine call.
//!
//! The files here import no function of `kernel`, `loader` or `control`, so that `machine` can own what they declare.

pub mod dpc_queues;
pub mod irp_tracker;
pub mod registry;
pub mod request_script;
pub mod step_breakpoints;
pub mod step_route;
pub mod step_run;
pub mod stepper;
pub mod threads;
pub mod timers;
pub mod tracing;

#[cfg(windows)]
pub(crate) mod armed_moment;
#[cfg(windows)]
pub(crate) mod callbacks;
#[cfg(windows)]
pub(crate) mod control;
#[cfg(windows)]
pub(crate) mod control_areas;
#[cfg(windows)]
pub(crate) mod deferred;
#[cfg(windows)]
pub(crate) mod driver_object;
#[cfg(windows)]
pub(crate) mod hal;
#[cfg(windows)]
pub(crate) mod images;
#[cfg(windows)]
pub(crate) mod ipi;
#[cfg(windows)]
pub(crate) mod kernel;
#[cfg(windows)]
pub(crate) mod loader;
#[cfg(windows)]
pub(crate) mod machine;
#[cfg(windows)]
pub(crate) mod pool;
#[cfg(windows)]
pub(crate) mod stepping;
#[cfg(windows)]
pub(crate) mod system_threads;
#[cfg(windows)]
pub(crate) mod windows;
