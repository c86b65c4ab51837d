//! The identity of the file of a module, by which its symbols can be found later and on other machines.

use std::path::Path;

use recording::DebugFile;
use report::{PeHeaders, guarded};

/// Page size, in which the address space of a module is allocated.
const PAGE: u64 = 4096;

/// The identity of a PE image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// TimeDateStamp of its file header.
    pub timestamp: u32,
    /// SizeOfImage of its optional header.
    pub size: u32,
    /// PDB with its symbols, if it names one.
    pub debug: Option<DebugFile>,
}

impl Image {
    /// Reads the headers of a file; `None` if it cannot be read or is not a PE image, also if the library that reads it
    /// fails: a measurement must not end for it.
    #[must_use]
    pub fn read(path: &Path) -> Option<Self> {
        Self::unless_it_fails(|| PeHeaders::read(path).ok()?.ok())
    }

    fn unless_it_fails(read: impl FnOnce() -> Option<PeHeaders>) -> Option<Self> {
        let PeHeaders { timestamp, image_size, debug, .. } = guarded(read).ok()??;
        Some(Self { timestamp, size: image_size, debug })
    }

    /// Returns whether a module of `size` bytes of address space can be loaded from this file. The path that Windows
    /// reports can lead to another file: a newer one, or one for programs of another width.
    #[must_use]
    pub fn matches_module_size(&self, size: u64) -> bool {
        u64::from(self.size).div_ceil(PAGE) == size.div_ceil(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use fake_system::payloads::{put, tiny_image};

    use super::*;

    fn read(bytes: &[u8]) -> Option<Image> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Image::read(file.path())
    }

    #[test]
    fn the_breakpad_id_has_the_guid_and_the_age() {
        let debug = DebugFile { name: "tiny.pdb".into(), id: "123456789ABCDEF001020304050607081b".into() };
        assert_eq!(read(&tiny_image()), Some(Image { timestamp: 0x5F00_0001, size: 0x3000, debug: Some(debug) }));
    }

    #[test]
    fn only_pe_images_have_an_identity() {
        let mut file = tiny_image();
        put(&mut file, 0x20C, &4_u32.to_le_bytes()); // no CodeView
        assert_eq!(read(&file), Some(Image { timestamp: 0x5F00_0001, size: 0x3000, debug: None }));
        assert_eq!(read(b"\x7FELF"), None);
        assert_eq!(read(b""), None);
        assert_eq!(Image::read(Path::new("no/such/file")), None);
    }

    #[test]
    fn a_truncated_file_has_no_wrong_identity() {
        let whole = tiny_image();
        for length in 0..whole.len() {
            let image = read(&whole[..length]);
            assert!(image.is_none_or(|image| (image.timestamp, image.size) == (0x5F00_0001, 0x3000)), "{length}");
        }
    }

    #[test]
    fn a_module_of_another_size_does_not_match_the_file() {
        let image = read(&tiny_image()).unwrap();
        for (size, fills) in [(0x3000, true), (0x2FFF, true), (0x2001, true), (0x2000, false), (0x3001, false)] {
            assert_eq!(image.matches_module_size(size), fills, "{size:#x}");
        }
    }

    #[test]
    fn a_library_that_fails_is_a_file_without_an_identity() {
        assert_eq!(Image::unless_it_fails(|| panic!("an unknown machine")), None);
    }
}
