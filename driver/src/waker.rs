//! Wakes the thread that serves waiting requests, if a request waits.

use sample_ring::Armed;

use crate::nt::dpc::Dpc;

/// Whether a request waits. Changed under the engine's lock.
pub static WAITING: Armed = Armed::new();

/// Wakes the thread that serves waiting requests.
static WAKE: Dpc = Dpc::new(crate::wake);

/// Initializes the DPC. Called once, by DriverEntry.
pub fn initialize() {
    WAKE.initialize();
}

/// Wakes the thread that serves waiting requests, after a ring has become half full, if a request waits.
///
/// # IRQL
/// Any.
pub fn wake_reader() {
    if WAITING.is_armed() {
        WAKE.queue();
    }
}
