//! Intel's Debug Store (SDM Vol. 3B, "Debug Store (DS) Mechanism"; HAL control area): memory into which the processor
//! itself writes the branches that it takes (BTS) and its state at events (PEBS).
//!
//! | module | contents |
//! |---|---|
//! | `area` | which layout of the control area a build of Windows has |
//! | `buffer` | bounds of a buffer and how much of it has been written |
//! | `pebs` | the address and the counters of a PEBS record, by format |
//!
//! [`x86_defs::intel::debug_store`] defines the registers, the save area and the records.
//!
//! The contents of a buffer are untrusted: no value makes the code read beyond the buffer or panic.

#![cfg_attr(not(test), no_std)]

pub mod area;
pub mod buffer;
pub mod pebs;

pub use area::Layout;
pub use buffer::Buffer;
