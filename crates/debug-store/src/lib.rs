//! Intel's Debug Store (SDM Vol. 3B, "Debug Store (DS) Mechanism"; seed 004): memory into which a processor writes by itself
//! which branches it took (BTS) and what it was doing when an event happened (PEBS).
//!
//! | module | what it holds |
//! |---|---|
//! | `area` | the save area, as the processor and as Windows have it |
//! | `buffer` | what of a buffer has been written |
//! | `branch` | records of branches |
//! | `pebs` | records of events, by format |
//!
//! Everything here reads what a processor has written, and believes nothing of it: no value of a buffer makes the code read
//! beyond it, panic, or take longer than the buffer is long.

#![cfg_attr(not(test), no_std)]

pub mod area;
pub mod branch;
pub mod buffer;
pub mod pebs;

pub use area::{ControlArea1903, ControlAreaV62, Layout, SaveArea, word};
pub use branch::BranchRecord;
pub use buffer::Buffer;
