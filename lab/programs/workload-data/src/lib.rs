//! Data of workload.exe, whose accesses the bench makes up. A crate of its own, because its PDB has the types: those of
//! the functions would be in their names.

#![no_std]

/// The ends of a queue. Each has its thread, and both are in one cache line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Queue {
    /// Where it is read.
    pub head: u64,
    /// Where it is written.
    pub tail: u64,
}

/// The queue of which the accesses are made up.
pub static QUEUE: Queue = Queue { head: 0, tail: 0 };
