//! What a connection to a backend needs from the system.

use std::io;

use protocol::Code;

use crate::hal_error::HalError;

/// What counts: the driver, or the HAL of Windows without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backend {
    /// One sentence that says which one it is and what it cannot do; `None` for the driver.
    pub limits: Option<&'static str>,
    /// Whether it counts processes: what one executes on any CPU, and nothing else.
    pub counts_processes: bool,
}

impl Backend {
    /// The driver.
    pub const DRIVER: Self = Self { limits: None, counts_processes: false };
}

/// A process or a thread, by its ID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// A process.
    Process(u32),
    /// A thread.
    Thread(u32),
}

/// An open handle to the driver's device, or another backend that answers its requests.
pub trait Device {
    /// Returns what counts.
    fn backend(&self) -> Backend {
        Backend::DRIVER
    }

    /// Restricts a session to a thread, or to a process and those that it starts. It can be called for several of them.
    ///
    /// # Errors
    /// If the backend does not count them.
    fn follow(&self, session: u64, task: Task) -> io::Result<()> {
        let _ = (session, task);
        Err(HalError::NeedsHal.into())
    }

    /// Returns what is to be said of the session that was stopped last, in sentences.
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Sends a request. Returns the number of bytes written to `output`. Requests of several threads do not wait for
    /// each other.
    ///
    /// # Errors
    /// The Win32 error of a request that the driver did not answer.
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize>;

    /// Returns the same handle for another thread. It stays open until both are dropped.
    fn share(&self) -> Box<dyn Device + Send>;
}
