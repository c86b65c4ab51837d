//! That a signature was put on a file and nothing else done to it.
//!
//! Three places of a PE file are no part of what Authenticode's hash covers: the checksum, the entry of the directory
//! that says where the certificate table is, and that table, which is the end of the file ("Windows Authenticode
//! Portable Executable Signature Format"). Before the table the file is filled with zeros to a multiple of eight.

use core::mem::{offset_of, size_of};

use anyhow::{Context, Result, ensure};
use object::pe::{
    IMAGE_DIRECTORY_ENTRY_SECURITY, ImageDataDirectory, ImageDosHeader, ImageNtHeaders64, ImageOptionalHeader64,
};

/// Where a table of certificates begins, if there is one, is a multiple of this.
const ALIGNMENT: usize = 8;

/// Makes sure that `signed` is `unsigned` with a signature.
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

/// A PE file as Authenticode sees it.
struct Parts<'a> {
    /// What the hash covers, and zeros where it does not.
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
