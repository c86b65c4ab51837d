//! The drivers that are loaded.

#![expect(unsafe_code, reason = "reads the code of a driver")]

use crate::cpu::mmio;
use std::{
    collections::BTreeSet,
    ops::Range,
    ptr,
    sync::{PoisonError, RwLock, RwLockReadGuard},
};

/// A driver.
pub struct LoadedImage {
    pub name: String,
    pub addresses: Range<usize>,
    /// Where its cpuid instructions were.
    pub cpuids: BTreeSet<usize>,
    /// Whether it can reserve counters.
    pub can_reserve: bool,
}

static LOADED: RwLock<Vec<LoadedImage>> = RwLock::new(Vec::new());

/// Names of the drivers that are loaded.
pub fn names() -> Vec<String> {
    loaded().iter().map(|image| image.name.clone()).collect()
}

/// Whether the address is in a driver.
pub fn contains(address: usize) -> bool {
    loaded().iter().any(|image| image.addresses.contains(&address))
}

/// Returns the bytes of a driver from the address on, at most one instruction; None if no driver is there.
pub fn code_at(address: usize) -> Option<&'static [u8]> {
    let images = loaded();
    let image = images.iter().find(|image| image.addresses.contains(&address))?;
    let length = (image.addresses.end - address).min(mmio::MAX_INSTRUCTION_LENGTH);
    // SAFETY: the loader has mapped the image for so long, and an instruction of the driver is executing there, so it
    // stays loaded while the caller decodes it.
    Some(unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(address), length) })
}

/// Whether the address is in a driver that knows how to reserve counters, and so has to.
pub fn can_reserve(address: usize) -> bool {
    loaded().iter().any(|image| image.can_reserve && image.addresses.contains(&address))
}

/// Whether there was a cpuid instruction.
pub fn was_cpuid(address: usize) -> bool {
    loaded().iter().any(|image| image.cpuids.contains(&address))
}

fn loaded() -> RwLockReadGuard<'static, Vec<LoadedImage>> {
    LOADED.read().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a driver.
pub fn add(image: LoadedImage) {
    LOADED.write().unwrap_or_else(PoisonError::into_inner).push(image);
}

/// Removes the driver that is loaded at `base`, if it is one.
pub fn remove(base: usize) -> Option<LoadedImage> {
    let mut images = LOADED.write().unwrap_or_else(PoisonError::into_inner);
    let index = images.iter().position(|image| image.addresses.start == base)?;
    Some(images.swap_remove(index))
}
