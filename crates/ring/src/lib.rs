//! The ring between an interrupt that writes and a request that fetches, and the slot in which the interrupt finds it.
//!
//! | module | what it holds |
//! |---|---|
//! | `channel` | [`channel`]: one [`Producer`], one [`Consumer`], memory that can be refused |
//! | `slot` | [`Slot`]: a value that one at a time uses, and nobody waits for |
//! | `sync` | the atomics, or loom's in their place |
//!
//! The producer's side, and [`Slot::with`], are for any IRQL: nothing allocates, waits, loops or panics there. The
//! other functions that make or drop something are for IRQLs at which memory can be had.

#![cfg_attr(not(any(test, loom)), no_std)]

extern crate alloc;

mod channel;
mod slot;
mod sync;

pub use channel::{Consumer, Producer, Pushed, channel};
pub use slot::Slot;
