//! Loaded drivers: their images, imports and cpuid instructions.

pub mod cpuid_scan;
pub mod pe;

#[cfg(windows)]
pub(crate) mod driver_load;
#[cfg(windows)]
pub(crate) mod hook;
#[cfg(windows)]
pub(crate) mod imports;
