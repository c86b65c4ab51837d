//! What the client needs from Windows.

#![expect(clippy::missing_errors_doc, reason = "what is asked of Windows fails where Windows does, with its code")]

pub mod connection;
pub mod hal;
pub mod known_work;
pub mod lifetimes;
pub mod processes;
pub mod topology;
pub mod trace;
#[cfg(windows)]
pub mod windows;

use std::any::Any;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

pub use halprof::Task;
use halprof::event::event_cache::EventCache;
use halprof::protected::Volume;
use halprof::{Device, ServiceState};
use serde::Serialize;

use crate::hal::HalCalls;
use crate::known_work::{CALLS, Function, KnownWork};
use crate::topology::Topology;
use crate::trace::{TraceError, TracePlan, TraceSession, TraceSink};

/// A running process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningProcess {
    /// Process ID. Windows gives the ID of a process that has ended to another one.
    pub id: u32,
    /// File name of its program.
    pub name: String,
    /// Time of its creation in units of 100 ns since 1601; zero if it is unknown.
    pub created: u64,
    /// The same time in units of the clock of samples, or some milliseconds earlier; `None` if it is unknown.
    pub created_on_clock: Option<u64>,
}

/// A process or thread whose ID Windows gives to no other one until this is dropped.
pub trait OpenTask: Send {
    /// Returns whether it has ended.
    fn has_ended(&self) -> bool;
}

/// A start or an end of a process.
pub enum ProcessChange {
    /// A process has started. It is held, unless it has ended before it could be opened.
    Started(u32, Option<Box<dyn OpenTask>>),
    /// A process has ended.
    Ended(u32),
}

/// The processes that this one starts, and those that they start.
pub trait StartedProcesses: Send {
    /// Returns the next start or end, in their order; `None` if there is none now. A start is known before the process
    /// executes its first instruction.
    fn next_change(&mut self) -> io::Result<Option<ProcessChange>>;
    /// Returns how many processes were started so far, and Windows told of the start or not.
    fn total(&self) -> io::Result<u64>;
}

/// The processes of the machine, for a thread of their own. Errors have Win32 codes.
pub trait ProcessSource: Send {
    /// Returns every process.
    fn processes(&self) -> io::Result<Vec<RunningProcess>>;
    /// Returns the modules of a process.
    fn modules(&self, process: u32) -> io::Result<Vec<LoadedModule>>;
    /// Returns the process and the ID of each thread.
    fn threads(&self) -> io::Result<Vec<(u32, u32)>> {
        Ok(Vec::new())
    }
    /// Opens a process or a thread.
    fn open(&self, task: Task) -> io::Result<Box<dyn OpenTask>>;
    /// Returns the modules of the kernel, or an error if Windows hides where they are.
    fn kernel_modules(&self) -> io::Result<Vec<LoadedModule>>;
    /// Converts a path in the namespace of the kernel to one for programs.
    fn win32_path(&self, path: &str) -> PathBuf {
        path.into()
    }
}

/// A file in the address space of a process, or of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoadedModule {
    /// Lowest address.
    pub base: u64,
    /// Size in the address space, in bytes.
    pub size: u64,
    /// The file.
    pub path: PathBuf,
}

/// Returns this machine; `None` if it does not run Windows.
#[cfg(windows)]
#[must_use]
pub fn this_system() -> Option<Box<dyn System>> {
    Some(Box::new(windows::Windows))
}

/// Returns this machine; `None` if it does not run Windows.
#[cfg(not(windows))]
#[must_use]
pub fn this_system() -> Option<Box<dyn System>> {
    None
}

/// What the kernel checks when it loads a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeIntegrity {
    /// Whether it refuses drivers without a valid signature.
    pub is_enforced: bool,
    /// Whether it accepts signatures for tests.
    pub accepts_test_signatures: bool,
}

/// What identifies a Windows; each part is `None` if it is unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct WindowsVersion {
    /// The build and its update: `26100.4061`.
    pub build: Option<String>,
    /// The release: `24H2`.
    pub release: Option<String>,
    /// The edition: `Professional`.
    pub edition: Option<String>,
}

/// Name of the service of the agent.
pub const AGENT: &str = "halprof-agent";

/// The program of the agent: beside `client.exe`, and a copy for the service in the folder of halprof for programs.
pub const AGENT_PROGRAM: &str = if cfg!(windows) { "halprof-agent.exe" } else { "halprof-agent" };

/// The service of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentService {
    /// Its command line.
    pub command: OsString,
    /// Whether it runs.
    pub runs: bool,
}

/// Who uses the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeUser {
    /// An administrator.
    Administrator,
    /// The service of the agent.
    Service,
}

/// What a service does until its argument returns true, and its exit code.
pub type ServiceBody = Box<dyn FnOnce(&dyn Fn() -> bool) -> i32 + Send>;

/// The machine on which the client runs. Errors have Win32 codes.
pub trait System {
    /// Returns the imported events.
    fn event_cache(&self) -> EventCache {
        EventCache::default()
    }

    /// Opens the driver's device. Enables the profiling privilege if the account has it.
    fn open(&self) -> io::Result<Box<dyn Device>>;
    /// Returns the functions of Windows for its HAL, if there are any. Enables the profiling privilege if the account
    /// has it.
    fn hal(&self) -> Option<Arc<dyn HalCalls>> {
        None
    }
    /// Returns the state of the service; `None` if it does not exist.
    fn service(&self) -> io::Result<Option<ServiceState>>;
    /// Returns the path of the file that the service loads, as Windows stores it; `None` if the service does not exist.
    fn image(&self) -> io::Result<Option<String>>;
    /// Creates the service, or corrects the settings of an existing one. Returns whether it is new.
    fn register(&self) -> io::Result<bool>;
    /// Starts the service.
    fn start(&self) -> io::Result<()>;
    /// Asks the service to stop, without waiting for it.
    fn stop(&self) -> io::Result<()>;
    /// Deletes the service.
    fn delete(&self) -> io::Result<()>;
    /// Returns the service of the agent; `None` if it does not exist.
    fn agent(&self) -> io::Result<Option<AgentService>>;
    /// Creates the service of the agent, or corrects its settings. It runs a program with these arguments, as
    /// LocalSystem with the two privileges that it needs.
    fn register_agent(&self, program: &Path, arguments: Vec<OsString>) -> io::Result<()>;
    /// Sets the command line of the service, as [`agent`](Self::agent) returned it.
    fn set_agent_command(&self, command: &OsStr) -> io::Result<()>;
    /// Returns the path for the program of the service, in a folder that only administrators can change. Neither need
    /// exist.
    fn agent_program(&self) -> io::Result<PathBuf>;
    /// Returns the path of this program.
    fn this_program(&self) -> io::Result<PathBuf> {
        std::env::current_exe()
    }
    /// Returns the file system, as a program of an administrator uses it, or the service of the agent, which also
    /// trusts its own account.
    fn volume(&self, user: VolumeUser) -> io::Result<Box<dyn Volume>>;
    /// Starts the service of the agent, if it exists and does not run.
    fn start_agent(&self) -> io::Result<()>;
    /// Asks the service of the agent to stop. Returns whether it still runs.
    fn stop_agent(&self) -> io::Result<bool>;
    /// Deletes the service of the agent. Returns whether it existed.
    fn delete_agent(&self) -> io::Result<bool>;
    /// Runs as the service of the agent, which has started this process.
    fn serve_agent(&self, body: ServiceBody) -> io::Result<()>;
    /// Returns the path at which the service expects its driver.
    fn driver_path(&self) -> io::Result<PathBuf>;
    /// Returns the security descriptor of the GUID of the driver's events; `None` if the default of Windows applies.
    fn provider_descriptor(&self) -> io::Result<Option<Vec<u8>>>;
    /// Sets this security descriptor.
    fn set_provider_descriptor(&self, descriptor: &[u8]) -> io::Result<()>;
    /// Removes this security descriptor, so that the default of Windows applies.
    fn remove_provider_descriptor(&self) -> io::Result<()>;
    /// Returns what the kernel checks when it loads a driver.
    fn code_integrity(&self) -> io::Result<CodeIntegrity>;
    /// Returns whether the processor is no x86: Windows on ARM64 emulates one for this program, and CPUID as well.
    fn is_emulated(&self) -> bool;
    /// Returns what identifies this Windows.
    fn windows_version(&self) -> WindowsVersion;
    /// Reads a file of the driver.
    fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }
    /// Writes a file of the driver. It is on the disk when this returns, so a crash after a later rename cannot leave a
    /// file of the right name and the wrong content.
    fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    }
    /// Renames a file of the driver. It replaces an existing one in one step.
    fn rename_file(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }
    /// Removes a file of the driver.
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
    /// Waits for a short time, in which other threads run.
    fn pause(&self);
    /// Makes Ctrl-C end the running command, but not the client, which can query it.
    fn note_interrupts(&self) -> io::Result<()>;
    /// Returns whether Ctrl-C was pressed since `note_interrupts`.
    fn interrupted(&self) -> bool;
    /// Lets the programs that this one starts from now on end with it, in whatever way it ends.
    fn end_children_with_this(&self) -> io::Result<()>;
    /// Returns the processes that this one starts from now on, with those that they start.
    fn started_processes(&self) -> io::Result<Box<dyn StartedProcesses>>;
    /// Returns whether progress can be shown on standard error: it is a terminal, and the command, if there is one,
    /// does not write to it.
    fn shows_progress(&self, command: bool) -> bool;
    /// Returns what knows the processes and their modules.
    fn process_source(&self) -> Box<dyn ProcessSource>;
    /// Returns the frequency of the time-stamp counter in hertz, if it is known.
    fn tsc_frequency(&self) -> Option<u64>;
    /// Returns the processor time that this process has used, if it is known.
    fn processor_time(&self) -> Option<Duration>;
    /// Returns the core and the package of every processor.
    fn topology(&self) -> io::Result<Topology>;
    /// Executes each of `work`, in this order, on a processor.
    fn execute(&self, processor: u32, work: &[KnownWork]) -> io::Result<()>;
    /// Executes each of `work` as [`execute`](Self::execute) does, through nested calls. Returns the return addresses
    /// of the calls, from the innermost to the outermost. They do not come from Event Tracing for Windows, so the
    /// stacks that it delivers can be compared with them.
    fn execute_in_calls(&self, processor: u32, work: &[KnownWork]) -> io::Result<[u64; CALLS]>;
    /// Returns what the library needs of this machine to count for the current thread.
    fn thread_system(&self) -> Rc<dyn halprof::system::System>;
    /// Starts a thread that executes known work on a processor all the time, until the result is dropped.
    fn compete(&self, processor: u32) -> io::Result<Box<dyn Any>>;
    /// Gives the current thread the highest priority of those that no privilege is needed for, until the result is
    /// dropped.
    fn raise_priority(&self) -> io::Result<Box<dyn Any>>;
    /// Returns the addresses of the instructions of a function of known work.
    fn addresses_of(&self, function: Function) -> Range<u64>;
    /// Starts a session of Event Tracing for Windows, whose events go to `sink`.
    fn trace(&self, plan: &TracePlan, sink: TraceSink) -> Result<Box<dyn TraceSession>, TraceError>;
}
