//! Checks by its headers whether a file can be the driver, so that a file that Windows would refuse does not stop the
//! running driver.

use std::io;
use std::path::PathBuf;

use report::{PeError, PeHeaders};
use thiserror::Error;

use crate::error::UserError;
use crate::exit::Exit;
use crate::format::grouped;
use crate::system::{SERVICE, is_denied};

/// Why the driver's file cannot be installed, replaced or removed.
#[derive(Debug, Error)]
pub enum DriverFileError {
    /// The file cannot be accessed; `action` as in "cannot ...".
    #[error("cannot {action} {}", .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of Windows.
        #[source]
        cause: io::Error,
    },
    /// The file to be installed cannot be a driver.
    #[error("cannot install {}; nothing was changed", .path.display())]
    NotADriver {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: NotADriver,
    },
    /// The driver was installed by its INF; pnputil removes it.
    #[error("the driver was installed by halprof.inf, as {}", .path.display())]
    Packaged {
        /// The driver's file.
        path: PathBuf,
    },
}

impl UserError for DriverFileError {
    fn exit(&self) -> Exit {
        Exit::DriverFile
    }

    fn remedy(&self) -> Option<String> {
        const OTHER_PATH: &str = "client install --driver PATH, with the path of halprof.sys";
        let text = match self {
            Self::NotADriver { path, cause: NotADriver::Folder } => {
                let file = path.join(format!("{SERVICE}.sys"));
                return Some(format!("client install --driver {}", file.display()));
            }
            Self::NotADriver { .. } => OTHER_PATH,
            Self::File { cause, .. } if cause.kind() == io::ErrorKind::NotFound => OTHER_PATH,
            Self::File { cause, .. } if is_denied(cause) => "run from an elevated prompt",
            Self::File { .. } => return None,
            Self::Packaged { .. } => {
                "sc stop halprof, then: pnputil /delete-driver oemN.inf /uninstall\n       \
                 (which N: pnputil /enum-drivers), then repeat the command"
            }
        };
        Some(text.to_owned())
    }
}

/// IMAGE_FILE_MACHINE_AMD64 ("PE Format", Machine Types).
const MACHINE_AMD64: u16 = 0x8664;

/// IMAGE_SUBSYSTEM_NATIVE ("PE Format", Windows Subsystem).
const SUBSYSTEM_NATIVE: u16 = 1;

/// Why a file cannot be a driver for this system.
#[derive(Debug, Error)]
pub enum NotADriver {
    /// It is a folder, which may contain the file.
    #[error("it is a folder")]
    Folder,
    /// It is not a PE image.
    #[error("it is not a program, library or driver of Windows (PE)")]
    NotPe,
    /// It is a PE image with inconsistent or incomplete headers.
    #[error(transparent)]
    Headers(PeError),
    /// It is for 32-bit Windows or for another architecture.
    #[error("it is not for x86-64 (machine type 0x{0:04X})")]
    Machine(u16),
    /// It is a program or a library.
    #[error("it is a program or library, not a driver (subsystem {0})")]
    Subsystem(u16),
    /// Sections or the signature are missing from its end.
    #[error("it is truncated: it has {} bytes, and its headers describe {}", grouped(*.actual), grouped(*.required))]
    Truncated {
        /// Size of the file in bytes.
        actual: u64,
        /// Size in bytes according to its headers.
        required: u64,
    },
}

/// Checks the headers of a driver's file.
///
/// # Errors
/// If Windows would not load the file as a driver on x86-64, whatever its signature.
pub fn check(file: &[u8]) -> Result<(), NotADriver> {
    let headers = PeHeaders::parse(file).map_err(|error| match error {
        PeError::NotPe => NotADriver::NotPe,
        PeError::Headers(_) => NotADriver::Headers(error),
    })?;
    if headers.machine != MACHINE_AMD64 || !headers.is_64_bit {
        return Err(NotADriver::Machine(headers.machine));
    }
    if headers.subsystem != SUBSYSTEM_NATIVE {
        return Err(NotADriver::Subsystem(headers.subsystem));
    }
    let (actual, required) = (file.len() as u64, headers.file_size);
    if actual < required { Err(NotADriver::Truncated { actual, required }) } else { Ok(()) }
}
