//! The memory of this process, for processors of the model that write records to memory.
//!
//! As on real hardware, software is responsible for the addresses in IA32_DS_AREA and in the save area: the processor
//! writes to whatever address it finds there. While the processor can write, the address must be an aligned word in
//! this process, and all other code may access that word only as an atomic. This crate cannot check any of that.

#![expect(unsafe_code, reason = "accesses memory by its address")]

pub mod contiguous;

use model::Memory;
use std::{
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

/// All memory of this process. Null and unaligned addresses count as not mapped. An access to any other address that is
/// not memory ends the process.
///
/// The provenance of memory must be exposed (`expose_provenance`) before a processor gets its address. Memory that code
/// in another language allocated is exposed already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessMemory;

impl Memory for ProcessMemory {
    fn read(&self, address: u64) -> Option<u64> {
        word(address).map(|word| word.load(Ordering::Acquire))
    }

    fn write(&self, address: u64, value: u64) -> bool {
        word(address).map(|word| word.store(value, Ordering::Release)).is_some()
    }

    fn linear(&self, physical: u64) -> Option<u64> {
        contiguous::linear(physical)
    }
}

/// Returns the word at an address, or `None` if the address counts as not mapped. The reference is used for one access
/// only.
fn word<'a>(address: u64) -> Option<&'a AtomicU64> {
    let word: *mut u64 = ptr::with_exposed_provenance_mut(usize::try_from(address).ok()?);
    if word.is_null() || !word.is_aligned() {
        return None;
    }
    // SAFETY: the pointer is aligned and not null. The code that gave the address to the processor guarantees that it
    // is memory and that all other accesses are atomic.
    Some(unsafe { AtomicU64::from_ptr(word) })
}
