//! The check that signing added a signature to a file and changed nothing else.
//!
//! Authenticode's hash covers a PE file except for the checksum, the directory entry of the certificate table, and that
//! table, which is the end of the file ("Windows Authenticode Portable Executable Signature Format"). Before the table
//! the file is padded with zeros to a multiple of eight bytes.

use core::mem::{offset_of, size_of};

use anyhow::{Context, Result, ensure};
use object::pe::{
    IMAGE_DIRECTORY_ENTRY_SECURITY, ImageDataDirectory, ImageDosHeader, ImageNtHeaders64, ImageOptionalHeader64,
};

/// Alignment of the certificate table in the file.
const ALIGNMENT: usize = 8;

/// Checks that `signed` is `unsigned` plus a signature.
pub fn ensure_only_signed(unsigned: &[u8], signed: &[u8]) -> Result<()> {
    let mut before = Parts::of(unsigned).context("the file before")?;
    let after = Parts::of(signed).context("the file after")?;
    ensure!(before.certificates.is_empty(), "the file was signed before");
    ensure!(!after.certificates.is_empty(), "the file is not signed");
    before.covered.resize(before.covered.len().next_multiple_of(ALIGNMENT), 0);
    let differ = before.covered.iter().zip(&after.covered).position(|(old, new)| old != new);
    ensure!(differ.is_none(), "the byte at {:#x} has changed", differ.unwrap_or_default());
    let (old, new) = (before.covered.len(), after.covered.len());
    ensure!(old == new, "{old:#x} bytes were to be signed, and {new:#x} bytes are");
    Ok(())
}

/// A PE file, divided as Authenticode divides it.
struct Parts<'a> {
    /// Everything before the certificate table, with zeros in the fields that the hash does not cover.
    covered: Vec<u8>,
    certificates: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(file: &'a [u8]) -> Result<Self> {
        let dos = ImageDosHeader::parse(file)?;
        let optional = dos.nt_headers_offset() as usize + offset_of!(ImageNtHeaders64, optional_header);
        let directories = optional + size_of::<ImageOptionalHeader64>();
        let entry = directories + IMAGE_DIRECTORY_ENTRY_SECURITY * size_of::<ImageDataDirectory>();
        let at = |at: usize| -> Result<usize> {
            let bytes = file.get(at..at + 4).context("the headers are cut off")?;
            Ok(u32::from_le_bytes(bytes.try_into()?) as usize)
        };
        let (start, length) = (at(entry)?, at(entry + 4)?);
        let end = if start == 0 { file.len() } else { start };
        let (covered, certificates) = file.split_at_checked(end).context("the certificates are behind the file")?;
        ensure!(certificates.len() == length, "the certificates are not the end of the file");
        let mut covered = covered.to_vec();
        for place in [optional + offset_of!(ImageOptionalHeader64, check_sum), entry, entry + 4] {
            covered.get_mut(place..place + 4).context("the headers are cut off")?.fill(0);
        }
        Ok(Self { covered, certificates })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offset of the NT headers in the test file.
    const NT: usize = 0x40;
    const CHECKSUM: usize = NT + 24 + 64;
    const SECURITY: usize = NT + 24 + 112 + 4 * 8;

    /// Returns a file with headers and a length that is not a multiple of eight.
    fn unsigned() -> Vec<u8> {
        let mut file = vec![0; 0x203];
        file[..2].copy_from_slice(b"MZ");
        file[0x3C] = u8::try_from(NT).unwrap();
        file[0x200..].copy_from_slice(b"end");
        file
    }

    fn signed() -> Vec<u8> {
        let mut file = unsigned();
        file.resize(0x208, 0);
        file[CHECKSUM..CHECKSUM + 4].fill(0x5A);
        file[SECURITY..SECURITY + 2].copy_from_slice(&[0x08, 0x02]);
        file[SECURITY + 4] = 0x10;
        file.extend([0xCE; 0x10]);
        file
    }

    #[test]
    fn checksum_directory_entry_and_table_may_change_and_zeros_may_fill_up() {
        ensure_only_signed(&unsigned(), &signed()).unwrap();
    }

    #[test]
    fn whatever_else_differs_is_told() {
        type Change = fn(&mut Vec<u8>);
        let with = |change: Change| {
            let mut file = signed();
            change(&mut file);
            ensure_only_signed(&unsigned(), &file).map_err(|error| format!("{error:#}"))
        };
        let cases: [(Change, &str); 7] = [
            (|file| file[0x200] ^= 1, "the byte at 0x200 has changed"),
            (|file| file[0x207] = 1, "the byte at 0x207 has changed"),
            (|file| file[CHECKSUM - 1] ^= 1, "has changed"),
            (|file| file[SECURITY - 1] ^= 1, "has changed"),
            (|file| file[SECURITY] = 0x10, "are not the end of the file"),
            (|file| file.truncate(0x204), "behind the file"),
            (|file| *file = unsigned(), "not signed"),
        ];
        for (change, wanted) in cases {
            let told = with(change).unwrap_err();
            assert!(told.contains(wanted), "{told}");
        }
        let told = ensure_only_signed(&signed(), &signed()).unwrap_err().to_string();
        assert_eq!(told, "the file was signed before");
    }

    #[test]
    fn every_byte_that_the_hash_covers_is_compared() {
        let free = [CHECKSUM..CHECKSUM + 4, SECURITY..SECURITY + 8, 0x208..0x218];
        for place in 0..signed().len() {
            let mut file = signed();
            file[place] ^= 0x80;
            let may = free.iter().any(|range| range.contains(&place)) && !(SECURITY..SECURITY + 8).contains(&place);
            assert_eq!(ensure_only_signed(&unsigned(), &file).is_ok(), may, "{place:#x}");
        }
    }
}
