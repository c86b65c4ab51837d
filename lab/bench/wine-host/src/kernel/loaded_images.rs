//! The table of loaded drivers.

#![expect(unsafe_code, reason = "reads the code of a driver")]

use crate::{
    cpu::{instruction_scan::Replaced, mmio},
    nt,
    state::{images::LoadedImage, machine::MACHINE},
};
use std::{
    ops::Range,
    ptr,
    sync::{PoisonError, RwLockReadGuard},
};

/// Returns the names of the loaded drivers.
pub fn names() -> Vec<String> {
    loaded().iter().map(|image| image.name.clone()).collect()
}

/// Returns whether the address is in a driver.
pub fn contains(address: usize) -> bool {
    loaded().iter().any(|image| image.addresses.contains(&address))
}

/// Returns the addresses of the driver's image that contains the address.
pub fn addresses_around(address: usize) -> Option<Range<usize>> {
    loaded().iter().map(|image| image.addresses.clone()).find(|addresses| addresses.contains(&address))
}

/// Makes the code of every driver writable, for breakpoints.
pub fn make_code_writable() {
    for image in loaded().iter() {
        nt::make_writable(&image.addresses);
    }
}

/// Returns the offset of the address in its driver. Returns None if no driver is there.
pub fn offset(address: usize) -> Option<usize> {
    let images = loaded();
    let image = images.iter().find(|image| image.addresses.contains(&address))?;
    Some(address - image.addresses.start)
}

/// Returns the bytes of a driver from the address on, at most one instruction. Returns None if no driver is there.
pub fn code_at(address: usize) -> Option<&'static [u8]> {
    let images = loaded();
    let image = images.iter().find(|image| image.addresses.contains(&address))?;
    let length = (image.addresses.end - address).min(mmio::MAX_INSTRUCTION_LENGTH);
    // SAFETY: the loader has mapped the image to its end. An instruction of the driver executes at the address, so the
    // driver stays loaded while the caller decodes it.
    Some(unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(address), length) })
}

/// Returns whether the address is in a driver that can reserve counters, and so must do it.
pub fn can_reserve(address: usize) -> bool {
    loaded().iter().any(|image| image.can_reserve && image.addresses.contains(&address))
}

/// Returns whether the driver at the address handles faults, and if so, whether that of the instruction there.
pub fn guards(address: usize) -> Option<bool> {
    let images = loaded();
    let image = images.iter().find(|image| image.addresses.contains(&address) && !image.guarded.is_empty())?;
    Some(image.guarded.iter().any(|scope| scope.contains(&address)))
}

/// Returns whether memory is in a driver's image, and stays there.
pub fn is_resident(range: &Range<usize>) -> bool {
    let is_in = |addresses: &Range<usize>| addresses.contains(&range.start) && range.end <= addresses.end;
    let overlaps = |addresses: &Range<usize>| addresses.start < range.end && range.start < addresses.end;
    loaded().iter().any(|image| is_in(&image.addresses) && !image.pageable.iter().any(overlaps))
}

/// Returns the instruction that was replaced at the address.
pub fn replaced(address: usize) -> Option<Replaced> {
    loaded().iter().find_map(|image| image.instructions.get(&address).copied())
}

fn loaded() -> RwLockReadGuard<'static, Vec<LoadedImage>> {
    MACHINE.kernel.images.read().unwrap_or_else(PoisonError::into_inner)
}

/// Adds a driver.
pub fn add(image: LoadedImage) {
    MACHINE.kernel.images.write().unwrap_or_else(PoisonError::into_inner).push(image);
}

/// Removes and returns the driver that is loaded at `base`.
pub fn remove(base: usize) -> Option<LoadedImage> {
    let mut images = MACHINE.kernel.images.write().unwrap_or_else(PoisonError::into_inner);
    let index = images.iter().position(|image| image.addresses.start == base)?;
    Some(images.swap_remove(index))
}
