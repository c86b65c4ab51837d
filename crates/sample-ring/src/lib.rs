//! A ring buffer between an interrupt handler that writes and a request that reads, and the slot through which the
//! handler finds the ring.
//!
//! | module | contents |
//! |---|---|
//! | `channel` | [`channel()`]: one [`Producer`], one [`Consumer`]; creation is fallible |
//! | `memory` | [`Memory`]: where the items are |
//! | `armed` | [`Armed`]: whether a consumer waits to be woken |
//! | `slot` | [`Slot`]: exclusive, non-blocking access to a value |
//! | `sync` | core's atomics and cells, or loom's |
//!
//! # IRQL
//! The functions of [`Producer`], and [`Slot::try_with`], can be called at any IRQL: they do not allocate, wait, loop
//! or panic. Creating a ring and dropping an end require an IRQL at which the global allocator can be called.

#![cfg_attr(not(any(test, loom)), no_std)]

extern crate alloc;

mod armed;
mod channel;
mod memory;
mod slot;
mod sync;

pub use armed::Armed;
pub use channel::{Consumer, Producer, Pushed, bytes, channel, channel_in};
pub use memory::Memory;
pub use slot::Slot;
