//! The memory of this process, for processors of the model that write to it by themselves.
//!
//! As on real machines, who points a processor at memory answers for it: by `IA32_DS_AREA` and by what stands in the save
//! area it goes to any address. It has to be memory of this process, aligned, and nobody may have a reference to it but as
//! atomics, as long as the processor can write there. Nothing of that can be looked at here.

#![expect(unsafe_code, reason = "memory by its address")]

use model::Memory;
use std::{
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

/// All memory of this process, by its addresses. Those that are no word's, and null, are not mapped; any other that is
/// nobody's memory ends the process.
///
/// Memory has to be exposed before its address is a processor's (`expose_provenance`), as that of another language is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Own;

impl Memory for Own {
    fn read(&self, address: u64) -> Option<u64> {
        word(address).map(|word| word.load(Ordering::Acquire))
    }

    fn write(&self, address: u64, value: u64) -> bool {
        word(address).map(|word| word.store(value, Ordering::Release)).is_some()
    }
}

/// The word at an address. The reference lives no longer than the access.
fn word<'a>(address: u64) -> Option<&'a AtomicU64> {
    let word: *mut u64 = ptr::with_exposed_provenance_mut(usize::try_from(address).ok()?);
    if word.is_null() || !word.is_aligned() {
        return None;
    }
    // SAFETY: it is aligned and not null; that it is memory, and others access it as atomics only, who pointed the processor
    // at it answers for.
    Some(unsafe { AtomicU64::from_ptr(word) })
}
