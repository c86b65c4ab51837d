//! The check that signing added a signature to a file and changed nothing else.
//!
//! Authenticode's hash covers a PE file except for the checksum, the directory entry of the certificate table, and that
//! table, which is the end of the file ("Windows Authenticode Portable Executable Signature Format"). Before the table
//! the file is padded with zeros to a multiple of eight bytes.

use core::mem::{offset_of, size_of};

use std::ops::Range;

use anyhow::{Context, Result, ensure};
use object::pe::{
    IMAGE_DIRECTORY_ENTRY_SECURITY, ImageDataDirectory, ImageDosHeader, ImageNtHeaders64, ImageOptionalHeader64,
};
use sha2::{Digest, Sha256};

/// Alignment of the certificate table in the file.
const ALIGNMENT: usize = 8;

/// Checks that `signed` is `unsigned` plus a signature.
pub fn ensure_only_signed(unsigned: &[u8], signed: &[u8]) -> Result<()> {
    let mut before = Parts::of(unsigned).context("the unsigned file")?;
    let after = Parts::of(signed).context("the signed file")?;
    ensure!(before.certificates.is_empty(), "the file is signed already");
    ensure!(!after.certificates.is_empty(), "the file is not signed");
    before.covered.resize(before.covered.len().next_multiple_of(ALIGNMENT), 0);
    let differ = before.covered.iter().zip(&after.covered).position(|(old, new)| old != new);
    ensure!(differ.is_none(), "the byte at {:#x} has changed", differ.unwrap_or_default());
    let (old, new) = (before.covered.len(), after.covered.len());
    ensure!(old == new, "the signature covers {new:#x} bytes instead of {old:#x}");
    Ok(())
}

/// Returns the certificate table of a signed PE file.
pub fn certificates(signed: &[u8]) -> Result<&[u8]> {
    Ok(Parts::of(signed)?.certificates)
}

/// Returns Authenticode's SHA-256 of a PE file, in hexadecimal. A signature does not change it.
pub fn digest(file: &[u8]) -> Result<String> {
    let mut parts = Parts::of(file)?;
    parts.covered.resize(parts.covered.len().next_multiple_of(ALIGNMENT), 0);
    let (mut hash, mut begin) = (Sha256::new(), 0);
    for field in parts.fields {
        hash.update(parts.covered.get(begin..field.start).context("the fields are in order")?);
        begin = field.end;
    }
    hash.update(parts.covered.get(begin..).context("the headers are truncated")?);
    Ok(format!("{:x}", hash.finalize()))
}

/// A PE file, divided as Authenticode divides it.
struct Parts<'a> {
    /// Everything before the certificate table, with zeros in the fields that the hash does not cover.
    covered: Vec<u8>,
    /// Those fields, in order.
    fields: [Range<usize>; 2],
    certificates: &'a [u8],
}

impl<'a> Parts<'a> {
    fn of(file: &'a [u8]) -> Result<Self> {
        let dos = ImageDosHeader::parse(file)?;
        let optional = dos.nt_headers_offset() as usize + offset_of!(ImageNtHeaders64, optional_header);
        let directories = optional + size_of::<ImageOptionalHeader64>();
        let entry = directories + IMAGE_DIRECTORY_ENTRY_SECURITY * size_of::<ImageDataDirectory>();
        let u32_at = |at: usize| -> Result<usize> {
            let bytes = file.get(at..at + 4).context("the headers are truncated")?;
            Ok(u32::from_le_bytes(bytes.try_into()?) as usize)
        };
        let (start, length) = (u32_at(entry)?, u32_at(entry + 4)?);
        let end = if start == 0 { file.len() } else { start };
        let (covered, certificates) =
            file.split_at_checked(end).context("the certificate table is beyond the end of the file")?;
        ensure!(certificates.len() == length, "the certificate table does not extend to the end of the file");
        let mut covered = covered.to_vec();
        let checksum = optional + offset_of!(ImageOptionalHeader64, check_sum);
        let fields = [checksum..checksum + 4, entry..entry + size_of::<ImageDataDirectory>()];
        for field in fields.clone() {
            covered.get_mut(field).context("the headers are truncated")?.fill(0);
        }
        Ok(Self { covered, fields, certificates })
    }
}

#[cfg(test)]
pub use tests::{signed as signed_file, unsigned as unsigned_file};

#[cfg(test)]
mod tests {
    use super::*;

    /// Offset of the NT headers in the test file.
    const NT: usize = 0x40;
    const CHECKSUM: usize = NT + 24 + 64;
    const SECURITY: usize = NT + 24 + 112 + 4 * 8;

    /// Returns a file with headers and a length that is not a multiple of eight.
    pub fn unsigned() -> Vec<u8> {
        let mut file = vec![0; 0x203];
        file[..2].copy_from_slice(b"MZ");
        file[0x3C] = u8::try_from(NT).unwrap();
        file[0x200..].copy_from_slice(b"end");
        file
    }

    /// Returns the same file with a signature.
    pub fn signed() -> Vec<u8> {
        let mut file = unsigned();
        file.resize(0x208, 0);
        file[CHECKSUM..CHECKSUM + 4].fill(0x5A);
        file[SECURITY..SECURITY + 2].copy_from_slice(&[0x08, 0x02]);
        file[SECURITY + 4] = 0x10;
        file.extend([0xCE; 0x10]);
        file
    }

    #[test]
    fn checksum_directory_entry_and_table_may_change_and_zeros_may_pad_the_file() {
        ensure_only_signed(&unsigned(), &signed()).unwrap();
    }

    #[test]
    fn every_other_difference_is_reported() {
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
            (|file| file[SECURITY] = 0x10, "does not extend to the end"),
            (|file| file.truncate(0x204), "beyond the end"),
            (|file| *file = unsigned(), "not signed"),
        ];
        for (change, wanted) in cases {
            let error = with(change).unwrap_err();
            assert!(error.contains(wanted), "{error}");
        }
        let error = ensure_only_signed(&signed(), &signed()).unwrap_err().to_string();
        assert_eq!(error, "the file is signed already");
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
