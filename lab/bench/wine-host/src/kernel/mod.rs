//! Stand-ins for kernel functions that Wine lacks or that behave differently there.

#[cfg(windows)]
pub(crate) mod call_driver;
#[cfg(windows)]
pub(crate) mod call_stack;
#[cfg(windows)]
pub(crate) mod callbacks;
#[cfg(windows)]
pub(crate) mod cancel_race;
#[cfg(windows)]
pub(crate) mod contiguous_memory;
#[cfg(windows)]
pub(crate) mod control_areas;
#[cfg(windows)]
pub(crate) mod current_ids;
#[cfg(windows)]
pub(crate) mod deferred;
#[cfg(windows)]
pub(crate) mod devices;
#[cfg(windows)]
pub(crate) mod dispatcher_objects;
#[cfg(windows)]
pub(crate) mod dispatcher_stack;
#[cfg(windows)]
pub(crate) mod dpc;
#[cfg(windows)]
pub(crate) mod driver_end;
#[cfg(windows)]
pub(crate) mod driver_object;
#[cfg(windows)]
pub(crate) mod ds_memory;
#[cfg(windows)]
pub(crate) mod etw;
#[cfg(windows)]
pub(crate) mod exceptions;
#[cfg(windows)]
pub(crate) mod group_affinity;
#[cfg(windows)]
pub(crate) mod hal;
#[cfg(windows)]
pub(crate) mod hardware_counters;
#[cfg(windows)]
pub(crate) mod instructions;
#[cfg(windows)]
pub(crate) mod interrupt;
#[cfg(windows)]
pub(crate) mod io_space;
#[cfg(windows)]
pub(crate) mod ipi;
#[cfg(windows)]
pub(crate) mod irql;
#[cfg(windows)]
pub(crate) mod irql_checked;
#[cfg(windows)]
pub(crate) mod loaded_images;
#[cfg(windows)]
pub(crate) mod nodes;
#[cfg(windows)]
pub(crate) mod object_references;
#[cfg(windows)]
pub(crate) mod pool;
#[cfg(windows)]
pub(crate) mod power;
#[cfg(windows)]
pub(crate) mod processor_change;
#[cfg(windows)]
pub(crate) mod processor_numbers;
#[cfg(windows)]
pub(crate) mod remains;
#[cfg(windows)]
pub(crate) mod requests;
#[cfg(windows)]
pub(crate) mod scripted_events;
#[cfg(windows)]
pub(crate) mod security;
#[cfg(windows)]
pub(crate) mod step_stops;
#[cfg(windows)]
pub(crate) mod step_trap;
#[cfg(windows)]
pub(crate) mod stepping;
#[cfg(windows)]
pub(crate) mod synchronization;
#[cfg(windows)]
pub(crate) mod system_information;
#[cfg(windows)]
pub(crate) mod system_threads;
#[cfg(windows)]
pub(crate) mod threads;
#[cfg(windows)]
pub(crate) mod time;
#[cfg(windows)]
pub(crate) mod timer;
#[cfg(windows)]
pub(crate) mod version;
#[cfg(windows)]
pub(crate) mod work_items;
