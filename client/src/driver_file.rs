//! Whether a file can be a driver, as far as its headers say: a file that Windows would refuse is found before the
//! driver that runs is stopped for it.

use std::io;
use std::path::PathBuf;

use object::pe::{
    IMAGE_DIRECTORY_ENTRY_SECURITY, IMAGE_FILE_MACHINE_AMD64, IMAGE_SUBSYSTEM_NATIVE, ImageNtHeaders32,
    ImageNtHeaders64,
};
use object::read::FileKind;
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile};
use object::{LittleEndian, pe};
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
    /// The driver was installed by its INF, and only that can remove it.
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

/// Why a file is no driver for this system.
#[derive(Debug, Error)]
pub enum NotADriver {
    /// A folder, which may hold the file.
    #[error("it is a folder")]
    Folder,
    /// No PE file.
    #[error("it is no program, library or driver of Windows")]
    NotPe,
    /// A PE file whose headers contradict themselves or are not all there.
    #[error("its headers make no sense: {0}")]
    Headers(object::Error),
    /// For 32-bit Windows or another architecture.
    #[error("it is for another processor than x86-64 (machine type 0x{0:04X})")]
    Machine(u16),
    /// A program.
    #[error("it is a program or library, not a driver (subsystem {0})")]
    Subsystem(u16),
    /// Sections or the signature lie behind its end.
    #[error("it is cut off: it has {} bytes, and its headers speak of {}", grouped(*.there), grouped(*.wanted))]
    CutOff {
        /// Bytes that it has.
        there: u64,
        /// Bytes that its headers speak of.
        wanted: u64,
    },
}

/// Checks the headers of a driver's file.
///
/// # Errors
/// If Windows would not load it as a driver on x86-64, whatever its signature.
pub fn check(file: &[u8]) -> Result<(), NotADriver> {
    match FileKind::parse(file).map_err(|_| NotADriver::NotPe)? {
        FileKind::Pe32 => of::<ImageNtHeaders32>(file),
        FileKind::Pe64 => of::<ImageNtHeaders64>(file),
        _ => Err(NotADriver::NotPe),
    }
}

fn of<Headers: ImageNtHeaders>(file: &[u8]) -> Result<(), NotADriver> {
    let parsed = PeFile::<Headers>::parse(file).map_err(NotADriver::Headers)?;
    let headers = parsed.nt_headers();
    let subsystem = headers.optional_header().subsystem();
    let machine = headers.file_header().machine.get(LittleEndian);
    if machine != IMAGE_FILE_MACHINE_AMD64 || !headers.is_type_64() {
        return Err(NotADriver::Machine(machine.0));
    }
    if subsystem != IMAGE_SUBSYSTEM_NATIVE {
        return Err(NotADriver::Subsystem(subsystem.0));
    }
    let signature = parsed.data_directories().get(IMAGE_DIRECTORY_ENTRY_SECURITY);
    let (there, wanted) = (file.len() as u64, end(parsed.section_table().iter(), signature));
    if there < wanted { Err(NotADriver::CutOff { there, wanted }) } else { Ok(()) }
}

/// Returns the first byte behind all sections and the signature, whose place is an offset in the file.
fn end<'a>(
    sections: impl Iterator<Item = &'a pe::ImageSectionHeader>,
    signature: Option<&pe::ImageDataDirectory>,
) -> u64 {
    let sum = |offset: u32, size: u32| u64::from(offset) + u64::from(size);
    let sections = sections
        .map(|section| sum(section.pointer_to_raw_data.get(LittleEndian), section.size_of_raw_data.get(LittleEndian)));
    let signature =
        signature.map(|directory| sum(directory.virtual_address.get(LittleEndian), directory.size.get(LittleEndian)));
    sections.chain(signature).max().unwrap_or_default()
}
