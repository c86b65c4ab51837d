//! Win32 error codes (source: winerror.h).

/// Opening a device: it does not exist. Starting a service: the driver's file does not exist.
pub const ERROR_FILE_NOT_FOUND: i32 = 2;
/// Starting a service: the folder of the driver's file does not exist.
pub const ERROR_PATH_NOT_FOUND: i32 = 3;
/// Usually: the process is not elevated.
pub const ERROR_ACCESS_DENIED: i32 = 5;
/// Opening a process or a thread: none has the ID.
pub const ERROR_INVALID_PARAMETER: i32 = 87;
/// Starting a trace session: the drive of its file has too little free space.
pub const ERROR_DISK_FULL: i32 = 112;
/// Starting a trace session: the path of its file is malformed, or another session writes the file.
pub const ERROR_BAD_PATHNAME: i32 = 161;
/// The kernel does not export a function that the driver imports.
pub const ERROR_PROC_NOT_FOUND: i32 = 127;
/// The file is not a driver for this machine.
pub const ERROR_BAD_EXE_FORMAT: i32 = 193;
/// The other end of a pipe is closed.
pub const ERROR_PIPE_NOT_CONNECTED: i32 = 233;
/// Windows does not trust the signature of the file.
pub const ERROR_INVALID_IMAGE_HASH: i32 = 577;
/// The service is already running.
pub const ERROR_SERVICE_ALREADY_RUNNING: i32 = 1056;
/// The service is stopping and accepts no control.
pub const ERROR_SERVICE_CANNOT_ACCEPT_CTRL: i32 = 1061;
/// The service is not running.
pub const ERROR_SERVICE_NOT_ACTIVE: i32 = 1062;
/// A program has a handle to the deleted service.
pub const ERROR_SERVICE_MARKED_FOR_DELETE: i32 = 1072;
/// The driver is on Windows' list of vulnerable drivers.
pub const ERROR_DRIVER_BLOCKED: i32 = 1275;
/// The token does not have the privilege.
pub const ERROR_PRIVILEGE_NOT_HELD: i32 = 1314;
/// Starting a trace session: all that Windows allows are running.
pub const ERROR_NO_SYSTEM_RESOURCES: i32 = 1450;
/// A policy of App Control blocks the file.
pub const ERROR_SYSTEM_INTEGRITY_POLICY_VIOLATION: i32 = 4551;
