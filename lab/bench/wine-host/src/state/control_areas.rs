//! The PROCESSOR_PROFILE_CONTROL_AREA of each processor.

use bench_protocol::ControlAreaMode;
use std::{
    collections::BTreeMap,
    sync::{Mutex, atomic::AtomicU64},
};

/// The control areas, and how Windows treats them.
pub struct ControlAreas {
    /// The areas by processor number.
    pub areas: Mutex<BTreeMap<u32, ControlArea>>,
    pub mode: Mutex<ControlAreaMode>,
}

impl Default for ControlAreas {
    fn default() -> Self {
        Self { areas: Mutex::default(), mode: Mutex::new(ControlAreaMode::Supported) }
    }
}

/// The memory of one area.
pub struct ControlArea(Box<[AtomicU64]>);

impl ControlArea {
    /// Returns an area of `words` words of 64 bits.
    pub fn new(words: usize) -> Self {
        Self((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    pub fn address(&self) -> usize {
        self.0.as_ptr().expose_provenance()
    }

    /// Returns whether the address is in the area.
    pub fn contains(&self, address: u64) -> bool {
        let offset = usize::try_from(address).ok().and_then(|address| address.checked_sub(self.address()));
        offset.is_some_and(|offset| offset < size_of_val(&*self.0))
    }
}
