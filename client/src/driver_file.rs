//! Checks by its headers whether a file can be a driver, so that a file that Windows would refuse does not stop the
//! driver that runs.

use object::pe::{
    IMAGE_DIRECTORY_ENTRY_SECURITY, IMAGE_FILE_MACHINE_AMD64, IMAGE_SUBSYSTEM_NATIVE, ImageNtHeaders32,
    ImageNtHeaders64,
};
use object::read::FileKind;
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile};
use object::{LittleEndian, pe};
use thiserror::Error;

use crate::format::grouped;

/// Why a file is no driver for this system.
#[derive(Debug, Error)]
pub enum NotADriver {
    /// A folder, which may hold the file.
    #[error("it is a folder")]
    Folder,
    /// No PE file.
    #[error("it is not a program, library or driver of Windows (PE)")]
    NotPe,
    /// A PE file with headers that contradict themselves or are truncated.
    #[error("its headers are damaged: {0}")]
    Headers(object::Error),
    /// For 32-bit Windows or another architecture.
    #[error("it is not for x86-64 (machine type 0x{0:04X})")]
    Machine(u16),
    /// A program.
    #[error("it is a program or library, not a driver (subsystem {0})")]
    Subsystem(u16),
    /// Sections or the signature lie behind its end.
    #[error("it is truncated: it has {} bytes, and its headers describe {}", grouped(*.there), grouped(*.wanted))]
    Truncated {
        /// Bytes that it has.
        there: u64,
        /// Bytes that its headers describe.
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
    if there < wanted { Err(NotADriver::Truncated { there, wanted }) } else { Ok(()) }
}

/// Returns the offset behind all sections and the signature. The address of the signature is an offset in the file.
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
