//! The processors: registers, instructions, interrupts, and what makes events happen.

pub mod branches;
pub mod clock;
pub mod exchange;
pub mod gate;
pub mod mmio;
pub mod scene;

#[cfg(windows)]
pub(crate) mod apic;
#[cfg(windows)]
pub(crate) mod processor;
#[cfg(windows)]
pub(crate) mod seat;
#[cfg(windows)]
pub(crate) mod trap;
