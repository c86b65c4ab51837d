//! What the errors of Windows mean: the driver cannot be opened, or its service cannot be changed.

use std::io;

use thiserror::Error;

use crate::error::UserError;
use crate::exit::Exit;
use crate::system::{SERVICE, ServiceState, System, is_denied, win32};

/// Why the driver or its service is not available.
#[derive(Debug, Error)]
pub enum SystemError {
    /// The client was built for another system.
    #[error("this client was not built for Windows, and the driver runs nowhere else")]
    NotWindows,
    /// The service does not exist.
    #[error("the driver is not installed")]
    NotInstalled,
    /// The service is not running.
    #[error("the driver is installed but not started")]
    NotStarted,
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
    /// Windows does not load the driver.
    #[error("Windows refuses to load the driver")]
    DriverRefused {
        /// Error of Windows.
        #[source]
        cause: io::Error,
    },
    /// The service is marked for deletion, and a program has a handle to it.
    #[error("the service {SERVICE} is being deleted, but a program still has it open")]
    DeletePending,
    /// The service control manager failed; `action` as in "cannot ... the service".
    #[error("cannot {action} the service {SERVICE}")]
    Service {
        /// What was tried.
        action: &'static str,
        /// Error of Windows.
        #[source]
        cause: io::Error,
    },
    /// The directory of Windows or of the client is unknown.
    #[error("cannot find the directory of Windows or of this program")]
    Directory {
        /// Error of Windows.
        #[source]
        cause: io::Error,
    },
}

impl UserError for SystemError {
    fn exit(&self) -> Exit {
        match self {
            Self::NotWindows => Exit::NotWindows,
            Self::NotInstalled => Exit::NotInstalled,
            Self::NotStarted => Exit::NotStarted,
            Self::Denied { .. } => Exit::Denied,
            Self::DriverRefused { .. } => Exit::DriverFile,
            Self::DeletePending => Exit::Busy,
            Self::NoDevice | Self::Open { .. } | Self::Service { .. } | Self::Directory { .. } => Exit::Failure,
        }
    }

    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::NotWindows => "client diagnose, client list --interface   (need no driver)",
            Self::NotInstalled => "client install",
            Self::NotStarted => "client install   (or: sc start halprof)",
            Self::NoDevice => "sc stop halprof, then: client install",
            Self::Denied { .. } => {
                "run from an elevated prompt; the account needs the right\n       \
                 \"Profile system performance\" (SeSystemProfilePrivilege)"
            }
            Self::DriverRefused { cause } => refused_driver(cause),
            Self::DeletePending => "close programs that show services (services.msc), then repeat the command",
            Self::Open { .. } | Self::Service { .. } | Self::Directory { .. } => return None,
        };
        Some(text.to_owned())
    }
}

fn refused_driver(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(win32::ERROR_FILE_NOT_FOUND | win32::ERROR_PATH_NOT_FOUND) => {
            "client install   (puts the file in its place)"
        }
        Some(win32::ERROR_PROC_NOT_FOUND) => "Windows 10 version 2004 or later, which the driver is made for",
        Some(win32::ERROR_INVALID_IMAGE_HASH) => {
            "a signed halprof.sys, as the package has it. Signed for tests, it takes\n       \
             bcdedit /set testsigning on   (Secure Boot off, then restart)"
        }
        Some(win32::ERROR_BAD_EXE_FORMAT) => "client install --driver PATH, with a halprof.sys for 64-bit Windows",
        _ => "allow the driver in the policies of Windows (Core isolation, App Control)",
    }
}

/// Returns the meaning of a failure of the service control manager; `action` as in "cannot ... the service".
pub fn service_error(action: &'static str, error: io::Error) -> SystemError {
    match error.raw_os_error() {
        _ if is_denied(&error) => {
            SystemError::Denied { action: format!("to {action} the service {SERVICE}"), cause: error }
        }
        Some(win32::ERROR_SERVICE_MARKED_FOR_DELETE) => SystemError::DeletePending,
        Some(
            win32::ERROR_FILE_NOT_FOUND
            | win32::ERROR_PATH_NOT_FOUND
            | win32::ERROR_PROC_NOT_FOUND
            | win32::ERROR_BAD_EXE_FORMAT
            | win32::ERROR_INVALID_IMAGE_HASH
            | win32::ERROR_DRIVER_BLOCKED
            | win32::ERROR_SYSTEM_INTEGRITY_POLICY_VIOLATION,
        ) => SystemError::DriverRefused { cause: error },
        _ => SystemError::Service { action, cause: error },
    }
}

/// Returns the meaning of a failure to open the device.
pub fn open_error(system: &dyn System, error: io::Error) -> SystemError {
    if is_denied(&error) {
        return SystemError::Denied { action: "to the driver".to_owned(), cause: error };
    }
    if error.raw_os_error() != Some(win32::ERROR_FILE_NOT_FOUND) {
        return SystemError::Open { cause: error };
    }
    match system.service() {
        Ok(None) => SystemError::NotInstalled,
        Ok(Some(ServiceState::Running)) => SystemError::NoDevice,
        Ok(Some(_)) => SystemError::NotStarted,
        Err(error) => service_error("query", error),
    }
}
