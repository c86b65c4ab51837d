//! What a connection to the driver needs from the system.

use std::io;

use protocol::Code;

/// An open handle to the driver's device.
pub trait Device {
    /// Sends a request. Returns the number of bytes written to `output`. Requests of several threads do not wait for
    /// each other.
    ///
    /// # Errors
    /// The Win32 error of a request that the driver did not answer.
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize>;

    /// Returns the same handle for another thread. It stays open until both are dropped.
    fn share(&self) -> Box<dyn Device + Send>;
}
