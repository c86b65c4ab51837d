//! The machine and its driver: what the processor is and can count, and the files of the driver.

pub mod core_types;
pub mod driver_file;
pub mod dump;
pub mod installed_driver;
pub mod provider_security;
pub mod service;
pub mod workarounds;
