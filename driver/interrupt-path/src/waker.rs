//! Wakes the thread that serves waiting requests, if a request waits.

use driver_core::Published;
use sample_ring::Armed;

use crate::dpc::Dpc;

/// Whether a request waits. Changed under the engine's lock.
pub static WAITING: Armed = Armed::new();

/// The DPC that wakes the thread.
static WAKE: Published<Dpc> = Published::new();

/// Initializes the DPC that wakes the thread. Called once, by DriverEntry.
pub fn initialize(wake: &'static Dpc) {
    wake.initialize();
    WAKE.publish(wake);
}

/// Wakes the thread that serves waiting requests, after a ring has become half full, if a request waits.
///
/// # IRQL
/// Any.
pub fn wake_reader() {
    if WAITING.is_armed() {
        // SAFETY: null, or the static of `initialize`
        if let Some(wake) = unsafe { WAKE.load().as_ref() } {
            wake.queue();
        }
    }
}
