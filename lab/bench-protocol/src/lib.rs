//! What tests and the lab say to each other over loopback TCP: one [`Command`] in, one [`Answer`] out, each a line of
//! JSON.
//!
//! The lab writes the number of its port into the file `port` of its folder when it is ready to answer.

#![forbid(unsafe_code)]

mod answer;
mod client;
mod command;

pub use answer::{
    Accesses, Answer, Counter, DebugStore, Descriptor, Enabled, Handler, Instruction, LedgerEntry, Pool, PoolTag,
    Registration, Stored, Ticks, Violation, Visited,
};
pub use client::{Client, Error};
pub use command::{Areas, CancelMoment, Command, Happened, InterruptMode, Place, Shadow, Time};
