//! What a session has for each of its processors that records, while the processor does not use it.

use alloc::vec::Vec;

use pmu::ProcessorIndex;
use sample_ring::Slot;

use crate::boxed::Boxed;
use crate::reply::Refusal;
use crate::try_vec::{NO_MEMORY, TryPush, try_collect};

/// One value for each processor, in ascending order of the processors.
#[derive(Debug)]
pub struct Parked<T>(Vec<(ProcessorIndex, Slot<Boxed<T>>)>);

impl<T> Parked<T> {
    /// Returns that of no processor.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds the value of a processor with a higher index than those before it.
    pub fn add(&mut self, processor: ProcessorIndex, value: T) -> Result<(), Refusal> {
        let slot = Slot::empty();
        // The slot is empty.
        let _ = slot.try_put(Boxed::new(value).ok_or(NO_MEMORY)?);
        self.0.try_push((processor, slot))
    }

    /// Returns the processors.
    #[inline(never)] // as `put`
    pub fn processors(&self) -> Result<Vec<ProcessorIndex>, Refusal> {
        try_collect(self.0.iter().map(|(processor, _)| *processor), self.0.len())
    }

    /// Returns the place of a processor's value.
    pub fn of(&self, processor: ProcessorIndex) -> Option<&Slot<Boxed<T>>> {
        let index = self.0.binary_search_by_key(&processor, |(number, _)| *number).ok()?;
        self.0.get(index).map(|(_, slot)| slot)
    }

    /// Returns the places of all values, with their processors.
    pub fn iter(&self) -> impl Iterator<Item = &(ProcessorIndex, Slot<Boxed<T>>)> {
        self.0.iter()
    }

    /// Takes the value for use on a processor.
    #[inline(never)] // as `put`
    pub fn take(&self, processor: ProcessorIndex) -> Option<Boxed<T>> {
        self.of(processor)?.try_take()
    }

    /// Puts the value of a processor back.
    #[inline(never)] // the code is the same for each type, and the linker keeps it once
    pub fn put(&self, processor: ProcessorIndex, value: Boxed<T>) {
        // The place is empty since the value was taken. Memory cannot be freed here.
        core::mem::forget(match self.of(processor) {
            Some(slot) => slot.try_put(value).err(),
            None => Some(value),
        });
    }
}
