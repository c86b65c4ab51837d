//! Headers of PE images ("PE Format", Microsoft Learn).

use std::fs::File;
use std::io;
use std::path::Path;

use debugid::DebugId;
use object::pe::{IMAGE_DIRECTORY_ENTRY_SECURITY, ImageNtHeaders32, ImageNtHeaders64};
use object::read::pe::{ImageNtHeaders, ImageOptionalHeader, PeFile};
use object::read::{CodeView, FileKind, ReadCache, ReadRef};
use object::{LittleEndian, Object};
use recording::DebugFile;

/// Why the headers of an image cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PeError {
    /// The file is not a PE image.
    #[error("it is not a PE image")]
    NotPe,
    /// The headers are inconsistent or incomplete.
    #[error("its headers are inconsistent or incomplete: {0}")]
    Headers(object::Error),
}

/// Fields of the headers of a PE image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeHeaders {
    /// Machine of the file header.
    pub machine: u16,
    /// Whether the optional header is that of PE32+.
    pub is_64_bit: bool,
    /// TimeDateStamp of the file header; with `image_size` the key of the image on symbol servers.
    pub timestamp: u32,
    /// SizeOfImage of the optional header.
    pub image_size: u32,
    /// Subsystem of the optional header.
    pub subsystem: u16,
    /// PDB of the image, if it names one.
    pub debug: Option<DebugFile>,
    /// Size of a file that has all sections and the signature.
    pub file_size: u64,
}

impl PeHeaders {
    /// Reads the headers of an image in memory or in a [`ReadCache`].
    ///
    /// # Errors
    /// If the data is not a PE image.
    pub fn parse<'data>(data: impl ReadRef<'data>) -> Result<Self, PeError> {
        match FileKind::parse(data).map_err(|_| PeError::NotPe)? {
            FileKind::Pe32 => parse::<ImageNtHeaders32, _>(data),
            FileKind::Pe64 => parse::<ImageNtHeaders64, _>(data),
            _ => Err(PeError::NotPe),
        }
    }

    /// Reads the headers of the file at `path`. Only the parts that are needed are read.
    ///
    /// # Errors
    /// If the file cannot be opened. If it is not a PE image, the inner result is an error.
    pub fn read(path: &Path) -> io::Result<Result<Self, PeError>> {
        Ok(Self::parse(&ReadCache::new(File::open(path)?)))
    }
}

fn parse<'data, Headers: ImageNtHeaders, Data: ReadRef<'data>>(data: Data) -> Result<PeHeaders, PeError> {
    let file = PeFile::<Headers, Data>::parse(data).map_err(PeError::Headers)?;
    let headers = file.nt_headers();
    Ok(PeHeaders {
        machine: headers.file_header().machine.get(LittleEndian).0,
        is_64_bit: headers.is_type_64(),
        timestamp: headers.file_header().time_date_stamp.get(LittleEndian),
        image_size: headers.optional_header().size_of_image(),
        subsystem: headers.optional_header().subsystem().0,
        debug: file.pdb_info().ok().flatten().and_then(|info| debug_file(&info)),
        file_size: file_size(&file),
    })
}

/// Returns the end of the last section or of the signature. The address of the signature is an offset in the file.
fn file_size<'data, Headers: ImageNtHeaders, Data: ReadRef<'data>>(file: &PeFile<'data, Headers, Data>) -> u64 {
    let end = |offset: u32, size: u32| u64::from(offset) + u64::from(size);
    let sections = file
        .section_table()
        .iter()
        .map(|section| end(section.pointer_to_raw_data.get(LittleEndian), section.size_of_raw_data.get(LittleEndian)));
    let signature = file.data_directories().get(IMAGE_DIRECTORY_ENTRY_SECURITY);
    let signature =
        signature.map(|directory| end(directory.virtual_address.get(LittleEndian), directory.size.get(LittleEndian)));
    sections.chain(signature).max().unwrap_or_default()
}

/// Returns the PDB with its Breakpad ID.
fn debug_file(info: &CodeView<'_>) -> Option<DebugFile> {
    let id = DebugId::from_guid_age(&info.guid(), info.age()).ok()?;
    Some(DebugFile { name: String::from_utf8_lossy(info.path()).into_owned(), id: id.breakpad().to_string() })
}
