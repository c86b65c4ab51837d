//! What the groups of this crate need of Windows and of the current thread.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Number of counters for which Windows keeps values per thread: MAX_HW_COUNTERS (winnt.h).
pub const MAX_THREAD_COUNTERS: usize = 16;

/// The functions of kernel32 for thread profiling.
pub const PROFILING_FUNCTIONS: [&str; 4] =
    ["EnableThreadProfiling", "ReadThreadProfilingData", "QueryThreadProfiling", "DisableThreadProfiling"];

/// What Windows keeps for the current thread while it is profiled, all since profiling was enabled. It is
/// PERFORMANCE_DATA (winnt.h) without the counters and the fields that the groups do not use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProfilingData {
    /// Number of context switches of the thread.
    pub context_switches: u32,
    /// Cycles of the time-stamp counter in which the thread ran, without the time in which it was interrupted.
    pub cycle_time: u64,
}

/// What Windows keeps of the counters for the current thread, since profiling was enabled: that part of
/// PERFORMANCE_DATA (winnt.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterValues {
    /// Number of counters in the configuration that the driver gave to Windows.
    pub count: u8,
    /// Values of the counters, by their position in the configuration. An element that was not enabled, or that the
    /// configuration does not have, is zero.
    pub values: [u64; MAX_THREAD_COUNTERS],
}

/// Size of THREAD_PERFORMANCE_DATA (public symbols of ntdll).
pub const THREAD_MEMORY_SIZE: usize = 0x1C0;

/// The bytes to which the handle of a profile points.
pub type ThreadMemoryBytes = [u8; THREAD_MEMORY_SIZE];

/// Thread profiling of the current thread, from [`System::enable_profiling`]. It can be used on this thread only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProfilingHandle {
    /// The handle of Windows.
    pub handle: usize,
}

/// The processors on which a thread may run: GROUP_AFFINITY (winnt.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Affinity {
    /// Processor group.
    pub group: u16,
    /// Processors of the group.
    pub mask: u64,
}

/// Windows and the current thread, as the groups see them. Every function concerns the thread that calls it. Errors
/// have Win32 codes.
pub trait System {
    /// Checks that Windows has the functions for thread profiling.
    ///
    /// # Errors
    /// The name of the first of [`PROFILING_FUNCTIONS`] that is missing.
    fn find_profiling(&self) -> Result<(), &'static str>;

    /// Returns whether the thread is profiled: QueryThreadProfiling.
    ///
    /// # Errors
    /// If Windows refuses it.
    fn is_profiled(&self) -> io::Result<bool>;

    /// Makes Windows count the context switches and the cycle time of the thread, and these counters of the
    /// configuration for the thread alone: EnableThreadProfiling with THREAD_PROFILING_FLAG_DISPATCH.
    ///
    /// # Errors
    /// If Windows refuses it.
    fn enable_profiling(&self, counters: u64) -> io::Result<ProfilingHandle>;

    /// Reads what Windows keeps for the thread apart from counters: ReadThreadProfilingData with
    /// READ_THREAD_PROFILING_FLAG_DISPATCHING alone, which executes no RDPMC.
    ///
    /// # Errors
    /// If Windows refuses it.
    fn read_profiling(&self, handle: &ProfilingHandle) -> io::Result<ProfilingData>;

    /// Reads the counters: ReadThreadProfilingData, which executes RDPMC in user mode. If the processor does not allow
    /// that (CR4.PCE), the program ends with 0xC0000096; the caller asks the driver first.
    ///
    /// # Errors
    /// If Windows refuses it.
    fn read_counters(&self, handle: &ProfilingHandle) -> io::Result<CounterValues>;

    /// Reads the memory to which the handle points, whatever it is.
    ///
    /// # Errors
    /// If it does not point to as much memory that can be read.
    fn read_memory(&self, handle: &ProfilingHandle) -> io::Result<ThreadMemoryBytes>;

    /// Ends the profiling of the thread: DisableThreadProfiling.
    ///
    /// # Errors
    /// If Windows refuses it.
    fn disable_profiling(&self, handle: ProfilingHandle) -> io::Result<()>;

    /// Restricts the thread to a CPU. Returns the processors on which it could run before.
    ///
    /// # Errors
    /// If the CPU is not active, or Windows refuses it.
    fn pin(&self, cpu: u32) -> io::Result<Affinity>;

    /// Lets the thread run on these processors again.
    ///
    /// # Errors
    /// If Windows refuses it.
    fn unpin(&self, affinity: &Affinity) -> io::Result<()>;

    /// Returns the CPU on which the thread runs.
    fn current_cpu(&self) -> u32;

    /// Returns the time on a clock that never goes back, from any origin.
    fn now(&self) -> Duration;

    /// Returns the time that the machine has slept since it was started. Without sleep it does not change at all.
    fn time_asleep(&self) -> Duration;

    /// Returns the build of Windows with its update, such as `26100.4061`; `None` if it is unknown.
    fn windows_build(&self) -> Option<String>;

    /// Returns the file with the [verification record](crate::verification); `None` if the system has no place for it.
    fn verification_file(&self) -> Option<PathBuf>;

    /// Reads a file of at most `most` bytes that only administrators can have written.
    ///
    /// # Errors
    /// If the file does not exist, is longer, or could have been written by another account.
    fn read_protected(&self, file: &Path, most: u64) -> io::Result<Vec<u8>>;

    /// Writes a file, and creates its folder if necessary, such that only administrators can change them.
    ///
    /// # Errors
    /// If others can change the folder, or the file cannot be written.
    fn write_protected(&self, file: &Path, content: &[u8]) -> io::Result<()>;

    /// Removes such a file, if it exists.
    ///
    /// # Errors
    /// If others can change its folder, or the file cannot be removed.
    fn remove_protected(&self, file: &Path) -> io::Result<()>;
}
