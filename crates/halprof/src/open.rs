//! Why the driver cannot be opened.

use std::io;

use thiserror::Error;

use crate::error_kind::ErrorKind;

/// Name of the driver's service, and of its file without `.sys`.
pub const SERVICE: &str = "halprof";

/// Win32 error codes (source: winerror.h).
mod win32 {
    /// The device does not exist.
    pub const ERROR_FILE_NOT_FOUND: i32 = 2;
    /// Usually: the process is not elevated. Also STATUS_DELETE_PENDING, of a driver that is stopping.
    pub const ERROR_ACCESS_DENIED: i32 = 5;
    /// The token does not have the privilege.
    pub const ERROR_PRIVILEGE_NOT_HELD: i32 = 1314;
}

/// The state of the driver's service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// The driver is not loaded.
    Stopped,
    /// The driver is loaded.
    Running,
    /// Windows unloads the driver when the last handle is closed.
    Stopping,
    /// The service is starting.
    Starting,
}

impl ServiceState {
    /// Returns the state as text.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Starting => "starting",
        }
    }
}

/// Why the driver cannot be opened.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The program was built for another system.
    #[error("this program was not built for Windows, and the driver runs nowhere else")]
    NotWindows,
    /// The service does not exist.
    #[error("the driver is not installed")]
    NotInstalled,
    /// The service is not running.
    #[error("the driver is installed but not started")]
    NotStarted,
    /// Windows unloads the driver when the last handle is closed, and opens it no more.
    #[error("the driver is stopping: a program still has it open")]
    Stopping,
    /// The service is running, but its device does not exist.
    #[error("the service {SERVICE} is running, but its device does not exist")]
    NoDevice,
    /// Windows or the driver denies access; `action` as in "access ... was denied".
    #[error("access {action} was denied")]
    Denied {
        /// What was tried.
        action: String,
        /// Error of Windows.
        #[source]
        cause: io::Error,
    },
    /// The device exists and cannot be opened.
    #[error("the driver's device cannot be opened")]
    Open {
        /// Error of Windows.
        #[source]
        cause: io::Error,
    },
    /// The device does not exist, and the state of the service cannot be queried.
    #[error("cannot query the service {SERVICE}")]
    Service {
        /// Error of Windows.
        #[source]
        cause: io::Error,
    },
}

impl OpenError {
    /// Returns the meaning of a failure to open the device. `service` returns the state of the service, `None` if it
    /// does not exist; it is called if the device does not exist or access is denied.
    #[must_use]
    pub fn new(cause: io::Error, service: impl FnOnce() -> io::Result<Option<ServiceState>>) -> Self {
        if Self::is_denied(&cause) {
            return match service() {
                Ok(Some(ServiceState::Stopping)) => Self::Stopping,
                _ => Self::Denied { action: "to the driver".to_owned(), cause },
            };
        }
        if cause.raw_os_error() != Some(win32::ERROR_FILE_NOT_FOUND) {
            return Self::Open { cause };
        }
        match service() {
            Ok(None) => Self::NotInstalled,
            Ok(Some(ServiceState::Running)) => Self::NoDevice,
            Ok(Some(ServiceState::Stopping)) => Self::Stopping,
            Ok(Some(_)) => Self::NotStarted,
            Err(cause) if Self::is_denied(&cause) => {
                Self::Denied { action: format!("to query the service {SERVICE}"), cause }
            }
            Err(cause) => Self::Service { cause },
        }
    }

    /// Returns whether Windows or the driver denies access, for a Win32 error.
    #[must_use]
    pub fn is_denied(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(win32::ERROR_ACCESS_DENIED | win32::ERROR_PRIVILEGE_NOT_HELD))
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotWindows => ErrorKind::NotWindows,
            Self::NotInstalled => ErrorKind::NotInstalled,
            Self::NotStarted | Self::Stopping => ErrorKind::NotStarted,
            Self::Denied { .. } => ErrorKind::Denied,
            Self::NoDevice | Self::Open { .. } | Self::Service { .. } => ErrorKind::Other,
        }
    }

    /// Returns what the user can do about it, if anything.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::NotInstalled => ".\\client install",
            Self::NotStarted => ".\\client install   (or: sc.exe start halprof)",
            Self::Stopping => "end the programs that use the driver, then: .\\client install",
            Self::NoDevice => "sc.exe stop halprof, then: .\\client install",
            Self::Denied { .. } => ELEVATED,
            Self::NotWindows | Self::Open { .. } | Self::Service { .. } => return None,
        };
        Some(text.to_owned())
    }
}

/// The remedy if access is denied.
pub const ELEVATED: &str = "run from an elevated prompt; the account needs the right\n       \
     \"Profile system performance\" (SeSystemProfilePrivilege)";

#[cfg(test)]
mod tests {
    use super::*;

    const STOPPING: &str = "the driver is stopping: a program still has it open";

    #[test]
    fn the_reason_depends_on_the_code_and_on_the_service() {
        let windows_says = io::Error::from_raw_os_error;
        for (code, state, kind, text) in [
            (2, Some(None), ErrorKind::NotInstalled, "the driver is not installed"),
            (2, Some(Some(ServiceState::Stopped)), ErrorKind::NotStarted, "the driver is installed but not started"),
            (2, Some(Some(ServiceState::Starting)), ErrorKind::NotStarted, "the driver is installed but not started"),
            (
                2,
                Some(Some(ServiceState::Running)),
                ErrorKind::Other,
                "the service halprof is running, but its device does not exist",
            ),
            (2, None, ErrorKind::Denied, "access to query the service halprof was denied"),
            (2, Some(Some(ServiceState::Stopping)), ErrorKind::NotStarted, STOPPING),
            (5, Some(Some(ServiceState::Stopping)), ErrorKind::NotStarted, STOPPING),
            (5, Some(Some(ServiceState::Running)), ErrorKind::Denied, "access to the driver was denied"),
            (5, Some(None), ErrorKind::Denied, "access to the driver was denied"),
            (1314, None, ErrorKind::Denied, "access to the driver was denied"),
            (31, Some(None), ErrorKind::Other, "the driver's device cannot be opened"),
        ] {
            let error = OpenError::new(windows_says(code), || state.ok_or_else(|| windows_says(5)));
            assert_eq!((error.kind(), error.to_string().as_str()), (kind, text), "{code} {state:?}");
        }
    }
}
