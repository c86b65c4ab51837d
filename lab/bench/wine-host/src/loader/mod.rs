//! Loaded drivers: their images, imports and replaced instructions.

pub mod pe;

#[cfg(windows)]
pub(crate) mod driver_load;
#[cfg(windows)]
pub(crate) mod hook;
#[cfg(windows)]
pub(crate) mod imports;
