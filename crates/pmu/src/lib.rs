//! The HAL's profile interfaces for x86-64, as docs/hal-spec describes them.
//!
//! | module | contents |
//! |---|---|
//! | [`constraints`] | which counters count and record an event |
//! | [`cpu`] | access to the processor: CPUID, model-specific registers, RDPMC |
//! | [`source`] | KPROFILE_SOURCE, and the entries of an interface's table |
//! | [`selection`] | selection of a profile interface from the boot processor |
//! | [`first_access`] | the first access of each register, guarded against faults |
//! | [`debug_store`] | Intel's Debug Store: its features on a processor, and its registers |
//! | [`errata`] | errata that make a source count wrongly |
//! | [`extra`] | registers that complete the selection of some events |
//! | [`hypervisor`] | detection of a hypervisor |
//! | [`interface`] | Default, Emon, Amd64, NetBurst, P6, Pentium: their registers, tables and operations |
//! | [`interval`] | ranges and defaults of intervals |
//! | [`lvt_pmi`] | the LVT entry for performance counters in the local APIC |
//! | `placement` | placement of events on counters |
//! | `misc_enable` | performance monitoring features that an Intel processor has enabled |
//! | [`disturbance`] | registers that another program changed |
//! | `per_cpu` | what one processor owns |
//! | [`state`] | 8 bytes of state per counter per processor |
//! | `topology` | the processors of a core, and those of a node |
//! | [`hal`] | the HAL functions on top of these modules |
//!
//! The crate has no unsafe code, no logging and no panics. Tests run it natively against a model of the hardware,
//! exactly as it runs in the driver.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod constraints;
pub mod core_type;
mod counter_set;
pub mod cpu;
pub mod current_cpu;
pub mod debug_store;
pub mod disturbance;
pub mod errata;
pub mod extra;
pub mod first_access;
pub mod hal;
pub mod hypervisor;
pub mod ibs;
pub mod interface;
pub mod interval;
pub mod known_loop;
pub mod last_branches;
pub mod lvt_pmi;
mod per_cpu;
pub mod placement;
mod recorder;
pub mod selection;
pub mod source;
pub mod state;
mod topology;
mod try_vec;

pub use core_type::CoreType;
pub use cpu::{Cpu, Cpuid, Msr};
pub use current_cpu::{CurrentCpu, ProcessorIndex};
pub use disturbance::{Disturbance, DisturbanceCell};
pub use first_access::GuardedCpu;
pub use hal::{Hal, HalError};
pub use hypervisor::Hypervisor;
pub use interface::{Interface, Kind, ProfileInterface, Support};
pub use per_cpu::PerCpu;
pub use recorder::Recorder;
pub use selection::{Options, Reason, Selection};
pub use source::{ProfileSource, Source};
pub use try_vec::{try_reserved, try_vec};
