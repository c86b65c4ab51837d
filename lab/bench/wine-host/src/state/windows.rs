//! The version and the settings of Windows that a test selects.

use bench_protocol::{Descriptor, KvaShadow};
use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicU32},
};

/// Windows 10 22H2.
pub const DEFAULT_BUILD: u32 = 19_045;

/// The reported version and mitigation.
pub struct Windows {
    pub build: AtomicU32,
    pub shadow: Mutex<KvaShadow>,
}

impl Default for Windows {
    fn default() -> Self {
        Self { build: AtomicU32::new(DEFAULT_BUILD), shadow: Mutex::new(KvaShadow::Off) }
    }
}

/// The privileges of clients and the descriptor of the device.
#[derive(Default)]
pub struct Security {
    /// Whether clients lack the privilege to profile the system.
    pub denies_profiling: AtomicBool,
    /// The descriptor that a driver set last.
    pub descriptor: Mutex<Option<Descriptor>>,
}
