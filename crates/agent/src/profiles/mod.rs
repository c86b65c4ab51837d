//! What becomes of profiles: they are written into a folder, or wait on the disk until a server takes them.

mod files;
mod folder;
mod outbox;
mod push;
mod request;

use std::ops::Add;
use std::time::SystemTime;

pub use folder::Folder;
pub use push::{Pauses, Push};

/// A profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The profile in the format of pprof, compressed by gzip.
    pub pprof: Vec<u8>,
    /// When it began.
    pub begun: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
}

/// Numbers of profiles since the start. Their sum over a [`Folder`] and a [`Push`] is meaningful.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Profiles that were written into the folder.
    pub written: u64,
    /// Profiles that were deleted from the folder: too old, or beyond its size.
    pub expired: u64,
    /// Profiles that the server took.
    pub sent: u64,
    /// Profiles that were deleted unsent because too many waited.
    pub dropped: u64,
    /// Profiles that the server refused for good, and that could not be written or read.
    pub failed: u64,
    /// Profiles that wait on the disk.
    pub waiting: u64,
    /// Their size in bytes.
    pub waiting_size: u64,
    /// Attempts to send a profile that failed, whether it was tried again or not.
    pub send_failures: u64,
}

impl Add for Statistics {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            written: self.written + other.written,
            expired: self.expired + other.expired,
            sent: self.sent + other.sent,
            dropped: self.dropped + other.dropped,
            failed: self.failed + other.failed,
            waiting: self.waiting + other.waiting,
            waiting_size: self.waiting_size + other.waiting_size,
            send_failures: self.send_failures + other.send_failures,
        }
    }
}
