//! Checks whether a file is halprof's driver and can be loaded, so that another one does not stop the running driver.

mod signature;

use std::io;
use std::path::PathBuf;

use halprof::OpenError;
use halprof::text::argument::argument;
use halprof::{SAME_VERSION, SERVICE};
use object::read::pe::PeFile64;
use object::{Object, ObjectSection};
use protocol::{DriverIdentity, IDENTITY_SECTION, PROTOCOL_VERSION};
use report::{PeError, PeHeaders, guarded};
use thiserror::Error;

pub use signature::{SignatureError, check as check_signature};

use terminal::format::grouped;
use user_error::UserError;
use user_error::exit::Exit;

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
    /// The file to be installed is not the driver of this client.
    #[error("cannot install {}; nothing was changed", .path.display())]
    NotADriver {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: NotADriver,
    },
    /// Windows would refuse to load the file.
    #[error("Windows would not load {}; nothing was changed", .path.display())]
    Signature {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        cause: SignatureError,
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
        match self {
            Self::NotADriver { cause: NotADriver::OtherVersion(_), .. } => Exit::VersionMismatch,
            _ => Exit::DriverFile,
        }
    }

    fn remedy(&self) -> Option<String> {
        const OTHER_PATH: &str = ".\\client install --driver PATH, with the path of halprof.sys";
        let text = match self {
            Self::NotADriver { path, cause: NotADriver::Folder } => {
                let file = path.join(format!("{SERVICE}.sys"));
                return Some(format!(".\\client install --driver {}", argument(&file.display().to_string())));
            }
            Self::NotADriver { cause: NotADriver::OtherVersion(_), .. } => SAME_VERSION,
            Self::NotADriver { .. } => OTHER_PATH,
            Self::Signature { cause: SignatureError::ForTests { .. }, .. } => {
                "bcdedit /set testsigning on   (Secure Boot off, then restart)"
            }
            Self::Signature { .. } => "the signed halprof.sys of the package, or --any-signature",
            Self::File { cause, .. } if cause.kind() == io::ErrorKind::NotFound => OTHER_PATH,
            Self::File { cause, .. } if OpenError::is_denied(cause) => "run from an elevated prompt",
            Self::File { .. } => return None,
            Self::Packaged { .. } => {
                "sc.exe stop halprof, then: pnputil /delete-driver oemN.inf /uninstall\n       \
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
    /// The library that reads its headers failed.
    #[error("{0}")]
    Unreadable(String),
    /// It is for 32-bit Windows or for another architecture.
    #[error("it is not for x86-64 (machine type 0x{0:04X})")]
    Machine(u16),
    /// It is a program or a library.
    #[error("it is a program or library, not a driver (subsystem {0})")]
    Subsystem(u16),
    /// It is another driver.
    #[error("it is a driver, but not that of halprof (it has no section {IDENTITY_SECTION})")]
    OtherDriver,
    /// It is halprof's driver, but of another protocol version.
    #[error("this client has protocol version {PROTOCOL_VERSION}, and that driver has version {0}")]
    OtherVersion(u32),
    /// Sections or the signature are missing from its end.
    #[error("it is truncated: it has {} bytes, and its headers describe {}", grouped(*.actual), grouped(*.required))]
    Truncated {
        /// Size of the file in bytes.
        actual: u64,
        /// Size in bytes according to its headers.
        required: u64,
    },
}

/// Checks that a file is halprof's driver for this client.
///
/// # Errors
/// If it is another driver, or if Windows would not load the file as a driver on x86-64, whatever its signature.
pub fn check(file: &[u8]) -> Result<(), NotADriver> {
    unless_it_fails(|| check_headers(file))
}

/// Returns what `check` returns, or that its libraries failed.
fn unless_it_fails(check: impl FnOnce() -> Result<(), NotADriver>) -> Result<(), NotADriver> {
    guarded(check).unwrap_or_else(|failure| Err(NotADriver::Unreadable(failure)))
}

fn check_headers(file: &[u8]) -> Result<(), NotADriver> {
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
    if actual < required {
        return Err(NotADriver::Truncated { actual, required });
    }
    let file = PeFile64::parse(file).map_err(|error| NotADriver::Headers(PeError::Headers(error)))?;
    let section = file.section_by_name(IDENTITY_SECTION).and_then(|section| section.data().ok());
    match section.and_then(DriverIdentity::read).map(|identity| identity.protocol()) {
        Some(PROTOCOL_VERSION) => Ok(()),
        Some(version) => Err(NotADriver::OtherVersion(version)),
        None => Err(NotADriver::OtherDriver),
    }
}

#[cfg(test)]
pub mod tests;
