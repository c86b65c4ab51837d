//! Identification of the build of an image.

use object::read::pe::{ImageNtHeaders, ImageOptionalHeader};
use object::{FileKind, LittleEndian, pe};

/// Build of an image according to its headers; symbol servers store images under the same pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageId {
    /// TimeDateStamp of the file header.
    pub timestamp: u32,
    /// SizeOfImage of the optional header.
    pub image_size: u32,
}

impl ImageId {
    /// Reads the headers of an image; `None` if the data is not a PE image.
    pub fn of_image(data: &[u8]) -> Option<Self> {
        match FileKind::parse(data).ok()? {
            FileKind::Pe32 => of::<pe::ImageNtHeaders32>(data),
            FileKind::Pe64 => of::<pe::ImageNtHeaders64>(data),
            _ => None,
        }
    }
}

fn of<Headers: ImageNtHeaders>(data: &[u8]) -> Option<ImageId> {
    let mut offset = pe::ImageDosHeader::parse(data).ok()?.nt_headers_offset().into();
    let (headers, _) = Headers::parse(data, &mut offset).ok()?;
    Some(ImageId {
        timestamp: headers.file_header().time_date_stamp.get(LittleEndian),
        image_size: headers.optional_header().size_of_image(),
    })
}
