//! What the client needs from Windows.

use std::io;
use std::path::PathBuf;

use protocol::Code;

/// Name of the service, and of the driver's file without `.sys`.
pub const SERVICE: &str = "halprof";

/// An open handle to the driver's device.
pub trait Device {
    /// Sends one request; answers how many bytes of `output` were written.
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize>;
}

/// The state of the service.
#[cfg_attr(not(any(windows, test)), expect(dead_code, reason = "no other system has services"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// The driver is not loaded.
    Stopped,
    /// The driver is loaded.
    Running,
    /// Windows was asked to unload it and waits for the last handle.
    Stopping,
    /// On its way up.
    Starting,
}

impl ServiceState {
    /// For people.
    pub fn text(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Starting => "starting",
        }
    }
}

/// A file in the address space of a process, or of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LoadedModule {
    /// Its lowest address.
    pub base: u64,
    /// Bytes of address space.
    pub size: u64,
    /// The file.
    pub path: PathBuf,
}

/// The machine the client runs on. Errors carry Win32 codes.
pub trait System {
    /// Opens the driver's device, with the profiling privilege enabled where the account has it.
    fn open(&self) -> io::Result<Box<dyn Device>>;
    /// The state of the service; `None` when there is none.
    fn service(&self) -> io::Result<Option<ServiceState>>;
    /// The file that the service loads, as Windows notes it; `None` when there is no service.
    fn image(&self) -> io::Result<Option<String>>;
    /// Creates the service, or brings the settings of an existing one in order; says whether it is new.
    fn register(&self) -> io::Result<bool>;
    /// Starts the service.
    fn start(&self) -> io::Result<()>;
    /// Asks the service to stop, and returns at once.
    fn stop(&self) -> io::Result<()>;
    /// Deletes the service.
    fn delete(&self) -> io::Result<()>;
    /// Where the service has its driver.
    fn driver_path(&self) -> io::Result<PathBuf>;
    /// Lets time pass while a service changes its state.
    fn pause(&self);
    /// From now on Ctrl-C ends the command that runs and not the client, which can ask for it.
    fn note_interrupts(&self) -> io::Result<()>;
    /// Whether Ctrl-C was pressed since it is noted.
    fn interrupted(&self) -> bool;
    /// Whether standard error is for someone who looks on while `command` runs, or nothing: a terminal that the
    /// output of a command does not share.
    fn is_watched(&self, command: bool) -> bool;
    /// Number and file name of the program of every process.
    fn processes(&self) -> io::Result<Vec<(u32, String)>>;
    /// The modules of a process.
    fn modules(&self, process: u32) -> io::Result<Vec<LoadedModule>>;
    /// The modules of the kernel.
    fn kernel_modules(&self) -> io::Result<Vec<LoadedModule>>;
}

/// Win32 error codes (source: winerror.h).
pub mod win32 {
    /// Of a device: none has the name. Of a start: the driver's file is not where the service has it.
    pub const ERROR_FILE_NOT_FOUND: i32 = 2;
    /// Likewise, and its folder is missing.
    pub const ERROR_PATH_NOT_FOUND: i32 = 3;
    /// Not elevated, as a rule.
    pub const ERROR_ACCESS_DENIED: i32 = 5;
    /// The kernel lacks a function that the driver calls.
    pub const ERROR_PROC_NOT_FOUND: i32 = 127;
    /// The file is no driver for this machine.
    pub const ERROR_BAD_EXE_FORMAT: i32 = 193;
    /// Of a pipe: its other end is closed.
    pub const ERROR_PIPE_NOT_CONNECTED: i32 = 233;
    /// The signature is not one that Windows trusts.
    pub const ERROR_INVALID_IMAGE_HASH: i32 = 577;
    /// The service runs already.
    pub const ERROR_SERVICE_ALREADY_RUNNING: i32 = 1056;
    /// The service is on its way down and takes no further order.
    pub const ERROR_SERVICE_CANNOT_ACCEPT_CTRL: i32 = 1061;
    /// The service does not run.
    pub const ERROR_SERVICE_NOT_ACTIVE: i32 = 1062;
    /// A program still holds the deleted service open.
    pub const ERROR_SERVICE_MARKED_FOR_DELETE: i32 = 1072;
    /// Windows has the driver on its list of vulnerable ones.
    pub const ERROR_DRIVER_BLOCKED: i32 = 1275;
    /// The token has no such privilege.
    pub const ERROR_PRIVILEGE_NOT_HELD: i32 = 1314;
    /// A policy of App Control forbids the file.
    pub const ERROR_SYSTEM_INTEGRITY_POLICY_VIOLATION: i32 = 4551;
}

/// Whether Windows said that the caller may not.
pub fn is_denied(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(win32::ERROR_ACCESS_DENIED | win32::ERROR_PRIVILEGE_NOT_HELD))
}
