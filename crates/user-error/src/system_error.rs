//! What the errors of Windows mean when the service of the driver cannot be changed.

use std::io;

use halprof::{OpenError, SERVICE};
use thiserror::Error as ThisError;

use crate::exit::Exit;
use crate::win32;
use crate::{Error, UserError};

/// Why the service of the driver cannot be changed.
#[derive(Debug, ThisError)]
pub enum SystemError {
    /// The client was built for another system.
    #[error("this client was not built for Windows, and the driver runs nowhere else")]
    NotWindows,
    /// Windows emulates x86-64.
    #[error("this computer has an ARM64 processor")]
    Emulated(#[source] NotX86),
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

/// Why an ARM64 processor has nothing for this client.
#[derive(Debug, ThisError)]
#[error("Windows emulates x86-64 for programs, but has no counters of x86-64")]
pub struct NotX86;

impl UserError for SystemError {
    fn exit(&self) -> Exit {
        match self {
            Self::NotWindows | Self::Emulated(_) => Exit::NotWindows,
            Self::DriverRefused { .. } => Exit::DriverFile,
            Self::DeletePending => Exit::Busy,
            Self::Service { .. } | Self::Directory { .. } => Exit::Failure,
        }
    }

    fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::NotWindows => ".\\client diagnose, .\\client list --interface   (need no driver)",
            Self::Emulated(_) => "WindowsPerf, which counts on ARM64; or .\\client diagnose --cpuid FILE",
            Self::DriverRefused { cause } => refused_driver(cause),
            Self::DeletePending => "close programs that show services (services.msc), then repeat the command",
            Self::Service { .. } | Self::Directory { .. } => return None,
        };
        Some(text.to_owned())
    }
}

fn refused_driver(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(win32::ERROR_FILE_NOT_FOUND | win32::ERROR_PATH_NOT_FOUND) => {
            ".\\client install   (puts the file in its place)"
        }
        Some(win32::ERROR_PROC_NOT_FOUND) => "Windows 10 version 2004 or later, which the driver is made for",
        Some(win32::ERROR_INVALID_IMAGE_HASH) => {
            "a signed halprof.sys, as the package has it. Signed for tests, it takes\n       \
             bcdedit /set testsigning on   (Secure Boot off, then restart)"
        }
        Some(win32::ERROR_BAD_EXE_FORMAT) => ".\\client install --driver PATH, with a halprof.sys for 64-bit Windows",
        _ => "allow the driver in the policies of Windows (Core isolation, App Control)",
    }
}

/// Returns the meaning of a failure of the service control manager; `action` as in "cannot ... the service".
#[must_use]
pub fn service_error(action: &'static str, error: io::Error) -> Error {
    if OpenError::is_denied(&error) {
        return OpenError::Denied { action: format!("to {action} the service {SERVICE}"), cause: error }.into();
    }
    let error = match error.raw_os_error() {
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
    };
    error.into()
}
