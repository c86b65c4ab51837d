//! A session of Event Tracing for Windows: what it is asked for, and what its events mean.
//!
//! | module | contents |
//! |---|---|
//! | `buffers` | the buffers of a session |
//! | `raw` | an event as Windows delivers it, in slices |
//! | `payload` | the fields of a payload, one after the other |
//! | `stack` | the stacks of an event |
//! | `images` | processes and images, from the system provider |
//! | `methods` | functions that .NET compiled |
//! | `paths` | paths in the namespace of the kernel |
//! | `profile` | samples of the HAL's counters, with their stacks |
//! | `switches` | context switches, threads that become ready, and their threads and processes |
//! | `meaning` | what an event means for a recording |

mod buffers;
mod images;
mod meaning;
mod methods;
pub mod paths;
mod payload;
pub mod profile;
pub mod raw;
mod stack;
pub mod switches;

use std::io;
use std::path::PathBuf;

use thiserror::Error;

pub use self::buffers::BufferSizes;
pub use self::images::{StartedProcess, TracedImage};
pub use self::meaning::{CodeEvent, Meaning, interpret};
pub use self::methods::TracedMethod;
pub use self::raw::Extension;
pub use self::raw::RawTraceEvent;

/// What a trace session records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePlan {
    /// Expected samples per second on all CPUs.
    pub samples_per_second: u64,
    /// Number of CPUs of the machine.
    pub processors: u32,
    /// Whether there are context switches with their stacks, too, and the threads that become ready.
    pub off_cpu: bool,
    /// The file that Windows writes; `None` to receive the events.
    pub file: Option<PathBuf>,
}

/// What a trace session lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TraceLosses {
    /// Events for which there was no room.
    pub events: u64,
    /// Buffers that were not delivered in time, or not written.
    pub buffers: u64,
}

/// Receives events on the thread of the session.
pub type TraceSink = Box<dyn FnMut(&RawTraceEvent) + Send>;

/// A running trace session. It is stopped when it is dropped.
pub trait TraceSession {
    /// Stops the session. When this returns, every event was delivered, and the sink is dropped.
    fn stop(&mut self) -> io::Result<TraceLosses>;
}

/// A trace session cannot be started.
#[derive(Debug, Error)]
#[error("{step} failed")]
pub struct TraceError {
    /// Function of Windows.
    pub step: &'static str,
    /// Its error.
    #[source]
    pub cause: io::Error,
}

impl TraceError {
    /// Returns a function that adds the failed function of Windows to its error.
    pub fn at(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self { step, cause }
    }
}
