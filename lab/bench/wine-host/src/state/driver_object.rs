//! The state of the driver object, as the I/O manager of Windows keeps it. Wine knows no pending stop and no reference.

use bench_protocol::StopState;
use std::sync::Mutex;

/// The driver object of the driver that created a device last.
#[derive(Default)]
pub struct DriverObject(pub Mutex<Option<DriverState>>);

pub struct DriverState {
    /// The address of the object.
    pub address: usize,
    /// An address in the driver's image.
    pub code: usize,
    /// References that the driver took.
    pub references: usize,
    /// Open handles of its devices.
    pub handles: usize,
    pub stop: StopState,
}
