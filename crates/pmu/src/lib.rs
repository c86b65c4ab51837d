//! The HAL's profile interfaces for x86-64, as the seeds describe them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cpu`] | the processor as this crate sees it: CPUID, model-specific registers, RDPMC |
//! | [`current_cpu`] | the number of a processor, and the token of the code that runs on it |
//! | [`source`] | KPROFILE_SOURCE, and a row of an interface's table |
//! | [`selection`] | the choice of a profile interface from the boot processor |
//! | [`debug_store`] | Intel's Debug Store: what a processor has of it, and its registers |
//! | [`hypervisor`] | what stands between the system and the processor |
//! | [`interface`] | Default, Emon, Amd64, NetBurst, P6, Pentium: their registers, tables and what they do to a processor |
//! | [`interval`] | ranges and defaults of intervals |
//! | [`lvt_pmi`] | how a counter's interrupt gets through the local APIC |
//! | `misc_enable` | what of performance monitoring an Intel processor has switched on |
//! | [`state`] | 8 bytes of state per counter per processor |
//! | [`hal`] | the HAL functions that stand on all this |
//!
//! No unsafe code, no logging, no panics: the crate runs natively in tests against a model of the hardware
//! exactly as it runs in the driver.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cpu;
pub mod current_cpu;
pub mod debug_store;
pub mod hal;
pub mod hypervisor;
pub mod interface;
pub mod interval;
pub mod lvt_pmi;
mod misc_enable;
pub mod selection;
pub mod source;
pub mod state;

pub use cpu::{Cpu, Msr};
pub use current_cpu::{CurrentCpu, ProcessorIndex};
pub use hal::{Hal, HalError};
pub use hypervisor::Hypervisor;
pub use interface::{Interface, Kind, ProfileInterface, Support};
pub use lvt_pmi::LvtPmi;
pub use selection::{Reason, Selection};
pub use source::{ProfileSource, Source};
