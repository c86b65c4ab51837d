//! The machine's own HAL as a backend: its profile sources, its counters at context switches, and their samples.
//!
//! | module | contents |
//! |---|---|
//! | `source_list` | the list of profile sources |
//! | `counter_owners` | who holds the counters |
//! | `added_sources` | events by their numbers, as sources that are added and removed |
//! | `attribution` | counts of threads and processes, from switches with counters |
//! | `machine` | what the HAL and CPUID tell of the machine |
//! | `session` | a session that counts |
//! | `samples` | samples in the form in which the driver delivers its own |
//! | `sampling` | a session that samples |
//! | `profile_objects` | a session that needs no administrator |
//! | `device` | the requests of the driver, answered by the HAL |

mod added_sources;
mod attribution;
pub mod counter_owners;
mod device;
mod machine;
mod profile_objects;
#[cfg(test)]
mod sample_tests;
mod samples;
mod sampling;
mod session;
pub mod source_list;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::io;

use raw_cpuid::CpuIdResult;

use crate::trace::{TraceError, TraceSession, TraceSink};

pub use self::device::HalDevice;
pub use self::profile_objects::ProfileObject;
pub use self::session::{COUNTERS, SAMPLED};

/// A session of Event Tracing for Windows whose events carry the HAL's counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HalPlan {
    /// The profile sources.
    pub sources: Vec<u32>,
    /// Number of CPUs of the machine.
    pub processors: u32,
    /// The events.
    pub carrier: Carrier,
}

/// Which events carry the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// Each context switch has the values of all.
    Switches,
    /// Each overflow of one is an event.
    Samples {
        /// Expected samples per second on each CPU.
        per_second: u64,
        /// Whether they have stacks, and the session tells which code is where.
        with_stacks: bool,
        /// Whether the session has context switches with stacks, too, and the threads that become ready.
        off_cpu: bool,
    },
}

/// A running session of such events.
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
    /// Sets the interval of a source, for every program.
    fn set_interval(&self, source: u32, interval: u32) -> io::Result<()>;
    /// Returns the maximum number of counters of a session; an error where Windows does not tell it.
    fn maximum_counters(&self) -> io::Result<u32>;
    /// Returns who holds the counters of a CPU, for [`counter_owners::held`]; an error where Windows does not tell it.
    fn counter_owners(&self, processor: u32) -> io::Result<Vec<u8>>;
    /// Returns the performance counter and its units per second.
    fn clock(&self) -> (u64, u64);
    /// Returns the number of CPUs.
    fn processors(&self) -> u32;
    /// Executes known work on a CPU, so that it switches to this thread.
    fn visit(&self, processor: u32) -> io::Result<()>;
    /// Returns CPUID of a processor.
    fn cpuid(&self, leaf: u32, subleaf: u32) -> CpuIdResult;
    /// Returns the process and the ID of each thread.
    fn threads(&self) -> io::Result<Vec<(u32, u32)>>;
    /// Starts to count the interrupts of a source that meet a process in user or in kernel mode, until the result is
    /// dropped. This needs no administrator.
    fn profile(&self, process: u32, source: u32, is_kernel: bool) -> io::Result<Box<dyn ProfileObject>>;
    /// Starts a session, whose events go to `sink`.
    fn start(&self, plan: &HalPlan, sink: TraceSink) -> Result<Box<dyn SwitchSession>, TraceError>;
}
