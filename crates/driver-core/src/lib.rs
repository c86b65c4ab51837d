//! Decisions of the driver about requests that wait, and about its end, without the kernel.
//!
//! Several threads, cancel routines, DPCs and interrupts meet in them. The driver calls these functions with the
//! kernel's locks and packets; `tests/loom.rs` calls the same functions with loom's, in every order.
//!
//! | module | contents |
//! |---|---|
//! | `pending` | [`Table`]: requests that wait and can be cancelled; who completes each |
//! | `waiting` | [`enqueue`], [`serve`], [`cancel`], [`cancel_routine`]: what happens to them |
//! | `ending` | [`Published`], [`take_down`], [`end_sampling`]: callbacks of the kernel find the engine until they end |
//! | `sync` | core's atomics, or loom's |

#![cfg_attr(not(any(test, loom)), no_std)]
#![forbid(unsafe_code)]

mod ending;
mod pending;
mod sync;
mod waiting;

pub use ending::{Parts, Published, SamplingParts, end_sampling, take_down};
pub use pending::{Entry, Packet, Table, Vacancy};
pub use sync::AtomicPtr;
pub use waiting::{End, Requests, cancel, cancel_routine, enqueue, serve};
