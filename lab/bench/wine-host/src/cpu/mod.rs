//! The processors: registers, instructions, interrupts, events and branches.

pub mod branches;
pub mod clock;
pub mod fair_lock;
pub mod instruction_scan;
pub mod interrupt_sites;
pub mod mmio;
pub mod xchg;

#[cfg(windows)]
pub(crate) mod affinity;
#[cfg(windows)]
pub(crate) mod apic;
#[cfg(windows)]
pub(crate) mod apic_pages;
#[cfg(windows)]
pub(crate) mod clock_offsets;
#[cfg(windows)]
pub(crate) mod lvt;
#[cfg(windows)]
pub(crate) mod pmi_handler;
#[cfg(windows)]
pub(crate) mod pmi_signal;
#[cfg(windows)]
pub(crate) mod processor;
#[cfg(windows)]
pub(crate) mod processors;
#[cfg(windows)]
pub(crate) mod time_mode;
#[cfg(windows)]
pub(crate) mod topology;
