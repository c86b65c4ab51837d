//! The machine and its driver: what the processor is and can count, and the files of the driver.

pub mod connection;
pub mod core_types;
pub mod cpuid;
pub mod driver_file;
pub mod dump;
pub mod encoding;
pub mod installed_driver;
pub mod processor_identity;
pub mod provider_security;
pub mod service;
pub mod workarounds;
