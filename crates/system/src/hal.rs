//! The machine's own HAL as a backend: its profile sources, and its counters at context switches.
//!
//! | module | contents |
//! |---|---|
//! | `source_list` | the list of profile sources |
//! | `added_sources` | events by their numbers, as sources that are added and removed |
//! | `attribution` | counts of threads and processes, from switches with counters |
//! | `lifetimes` | which thread and which process had an ID at a time |
//! | `machine` | what the HAL and CPUID tell of the machine |
//! | `session` | a session that counts |
//! | `device` | the requests of the driver, answered by the HAL |

mod added_sources;
mod attribution;
mod device;
mod lifetimes;
mod machine;
mod session;
pub mod source_list;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::io;

use raw_cpuid::CpuIdResult;

use crate::trace::{TraceError, TraceSession, TraceSink};

pub use self::device::HalDevice;
pub use self::session::COUNTERS;

/// The context switches of a machine with counters, as a session of Event Tracing for Windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchPlan {
    /// The profile sources that each switch carries.
    pub sources: Vec<u32>,
    /// Number of CPUs of the machine.
    pub processors: u32,
}

/// A running session of context switches.
pub trait SwitchSession: TraceSession + Send {
    /// Makes Windows deliver the events that it has in its buffers.
    fn flush(&mut self) -> io::Result<()>;
}

/// The functions of Windows for its HAL's profile sources. Errors have Win32 codes.
pub trait HalCalls: Send + Sync {
    /// Reserves the counters of the HAL for this program, until the result is dropped or the program ends in any way.
    fn reserve(&self) -> io::Result<Box<dyn Any + Send>>;
    /// Adds or removes a profile source, by a structure of SystemPerformanceTraceInformation.
    fn set_profile_sources(&self, structure: &[u8]) -> io::Result<()>;
    /// Returns the list of profile sources, for [`source_list::parse`].
    fn source_list(&self) -> io::Result<Vec<u8>>;
    /// Returns the interval of a source.
    fn interval(&self, source: u32) -> io::Result<u32>;
    /// Returns the maximum number of counters of a session; an error where Windows does not tell it.
    fn maximum_counters(&self) -> io::Result<u32>;
    /// Returns the performance counter and its units per second.
    fn clock(&self) -> (u64, u64);
    /// Returns the number of CPUs.
    fn processors(&self) -> u32;
    /// Executes known work on a CPU, so that it switches to this thread.
    fn visit(&self, processor: u32) -> io::Result<()>;
    /// Returns CPUID of a processor.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult;
    /// Returns the threads of a process.
    fn threads_of(&self, process: u32) -> io::Result<Vec<u32>>;
    /// Starts a session, whose events go to `sink`.
    fn start(&self, plan: &SwitchPlan, sink: TraceSink) -> Result<Box<dyn SwitchSession>, TraceError>;
}
