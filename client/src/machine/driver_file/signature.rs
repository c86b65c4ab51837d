//! The Authenticode signature of a driver's file: whether this Windows can accept it.
//!
//! Only Windows can verify a signature, when it loads the driver: by the roots that are built into the kernel, not by
//! the certificate stores of user mode, which WinVerifyTrust asks. So this checks what makes Windows refuse a file with
//! certainty ("Windows Authenticode Portable Executable Signature Format"): no signature, a hash that is not that of
//! the file, or a chain that does not lead to Microsoft. Everything else is left to Windows.

use std::mem::offset_of;
use std::ops::Range;

use authenticode::{AttributeCertificateIterator, AuthenticodeSignature, PeOffsetError, PeOffsets, PeTrait};
use cms::cert::CertificateChoices;
use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerIdentifier};
use der::asn1::ObjectIdentifier;
use der::{Decode, SliceReader};
use object::pe::{IMAGE_DIRECTORY_ENTRY_SECURITY, ImageDataDirectory, ImageNtHeaders64, ImageOptionalHeader64};
use object::read::pe::{ImageOptionalHeader, PeFile64};
use object::{LittleEndian, SectionIndex};
use report::guarded;
use sha1::Sha1;
use sha2::digest::Update;
use sha2::{Digest, Sha256, Sha384, Sha512};
use thiserror::Error;
use x509_cert::Certificate;
use x509_cert::name::Name;

use system::CodeIntegrity;

/// Maximum number of certificates in a chain; the names in a file could form a circle.
const LONGEST_CHAIN: usize = 16;

/// The common name in a name of X.500 (RFC 4519, 2.3).
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// Why Windows does not accept a file as a driver.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SignatureError {
    /// It is not signed.
    #[error("it has no signature, and Windows requires one")]
    Missing,
    /// The signature is that of another file.
    #[error("its signature is not valid: the file was changed after it was signed")]
    OtherFile,
    /// The signature is for tests, which this Windows does not accept.
    #[error("it is signed for tests, by \"{signer}\", and test signing is off")]
    ForTests {
        /// Common name of the signer.
        signer: String,
    },
}

/// A signature and its certificates.
#[derive(Debug, PartialEq, Eq)]
struct Signature {
    /// Common name of the signer.
    signer: String,
    /// Common name of the issuer at the end of the chain, as far as the file contains the chain.
    root: String,
}

impl Signature {
    /// Returns whether the chain does not lead to a root of Microsoft. Without test signing the kernel accepts only
    /// drivers that Microsoft signed and, on old installations, drivers that are cross-signed.
    fn is_for_tests(&self) -> bool {
        !self.root.starts_with("Microsoft ") || self.root.contains("Test")
    }
}

/// Checks whether Windows can accept the signature of `file`.
///
/// # Errors
/// Why Windows refuses it with certainty.
pub fn check(file: &[u8], windows: CodeIntegrity) -> Result<(), SignatureError> {
    if !windows.is_enforced {
        return Ok(());
    }
    match unless_it_fails(|| read(file))? {
        Some(signature) if signature.is_for_tests() && !windows.accepts_test_signatures => {
            Err(SignatureError::ForTests { signer: signature.signer })
        }
        _ => Ok(()),
    }
}

/// Returns what `read` returns; if the libraries that it calls fail, as for a signature that cannot be read here.
fn unless_it_fails(
    read: impl FnOnce() -> Result<Option<Signature>, SignatureError>,
) -> Result<Option<Signature>, SignatureError> {
    guarded(read).unwrap_or(Ok(None))
}

/// Reads the signature of a file and checks that it is of this file; `None` if it cannot be read here.
fn read(file: &[u8]) -> Result<Option<Signature>, SignatureError> {
    let Ok(pe) = PeFile64::parse(file) else { return Ok(None) };
    let image = SignedImage { file, pe };
    if image.certificate_table_range().is_ok_and(|table| table.is_none()) {
        return Err(SignatureError::Missing);
    }
    let Some((data, signature)) = first_signature(&image) else { return Ok(None) };
    match hash(&image, signature.digest().len()) {
        Some(hash) if hash != signature.digest() => Err(SignatureError::OtherFile),
        Some(_) => Ok(chain(data, &signature)),
        None => Ok(None),
    }
}

/// Returns the first signature in the certificate table, also as it is encoded.
fn first_signature<'a>(image: &'a SignedImage<'_>) -> Option<(&'a [u8], AuthenticodeSignature)> {
    let entry = AttributeCertificateIterator::new(image).ok()??.next()?.ok()?;
    Some((entry.data, entry.get_authenticode_signature().ok()?))
}

/// Returns the Authenticode hash of a file. Its length tells the algorithm.
fn hash(image: &SignedImage<'_>, length: usize) -> Option<Vec<u8>> {
    fn with<D: Digest + Update>(image: &SignedImage<'_>) -> Option<Vec<u8>> {
        let mut digest = D::new();
        authenticode::authenticode_digest(image, &mut digest).ok()?;
        Some(digest.finalize().to_vec())
    }
    match length {
        20 => with::<Sha1>(image),
        32 => with::<Sha256>(image),
        48 => with::<Sha384>(image),
        64 => with::<Sha512>(image),
        _ => None,
    }
}

/// Returns signer and root of a signature by the names in its certificates; `None` if the signer's is not among them.
fn chain(data: &[u8], signature: &AuthenticodeSignature) -> Option<Signature> {
    // AuthenticodeSignature::certificates panics if the file has none.
    let content = ContentInfo::decode(&mut SliceReader::new(data).ok()?).ok()?;
    let content: SignedData = content.content.decode_as().ok()?;
    let certificates: Vec<_> = content.certificates?.0.into_vec().into_iter().filter_map(x509).collect();
    let SignerIdentifier::IssuerAndSerialNumber(id) = &signature.signer_info().sid else { return None };
    let all = || certificates.iter().map(|certificate| &certificate.tbs_certificate);
    let signer = all().find(|one| one.serial_number == id.serial_number && one.issuer == id.issuer)?;
    let mut top = signer;
    for _ in 0..LONGEST_CHAIN {
        match all().find(|one| one.subject == top.issuer && one.subject != top.subject) {
            Some(above) => top = above,
            None => break,
        }
    }
    Some(Signature { signer: common_name(&signer.subject), root: common_name(&top.issuer) })
}

fn x509(choice: CertificateChoices) -> Option<Certificate> {
    match choice {
        CertificateChoices::Certificate(certificate) => Some(certificate),
        CertificateChoices::Other(_) => None,
    }
}

/// Returns the common name, or the whole name if it has none.
fn common_name(name: &Name) -> String {
    let parts = name.0.iter().flat_map(|part| part.0.iter());
    match parts.into_iter().find(|part| part.oid == COMMON_NAME) {
        Some(part) => String::from_utf8_lossy(part.value.value()).into_owned(),
        None => name.to_string(),
    }
}

/// A PE32+ file, as `authenticode` reads it.
struct SignedImage<'data> {
    file: &'data [u8],
    pe: PeFile64<'data>,
}

fn range(start: u32, size: u32) -> Result<Range<usize>, PeOffsetError> {
    let start = start as usize;
    Ok(start..start.checked_add(size as usize).ok_or(PeOffsetError)?)
}

impl PeTrait for SignedImage<'_> {
    fn data(&self) -> &[u8] {
        self.file
    }

    fn num_sections(&self) -> usize {
        self.pe.section_table().len()
    }

    fn section_data_range(&self, index: usize) -> Result<Range<usize>, PeOffsetError> {
        let section = self.pe.section_table().section(SectionIndex(index)).map_err(|_| PeOffsetError)?;
        range(section.pointer_to_raw_data.get(LittleEndian), section.size_of_raw_data.get(LittleEndian))
    }

    fn certificate_table_range(&self) -> Result<Option<Range<usize>>, PeOffsetError> {
        // The address in this entry is an offset in the file.
        let entry = self.pe.data_directory(IMAGE_DIRECTORY_ENTRY_SECURITY);
        let entry = entry.map(|entry| (entry.virtual_address.get(LittleEndian), entry.size.get(LittleEndian)));
        entry.filter(|(_, size)| *size > 0).map(|(start, size)| range(start, size)).transpose()
    }

    fn offsets(&self) -> Result<PeOffsets, PeOffsetError> {
        let headers = self.pe.dos_header().nt_headers_offset() as usize;
        let optional = headers + offset_of!(ImageNtHeaders64, optional_header);
        let check_sum = optional + offset_of!(ImageOptionalHeader64, check_sum);
        let size = size_of::<ImageDataDirectory>();
        let directory = optional + size_of::<ImageOptionalHeader64>() + IMAGE_DIRECTORY_ENTRY_SECURITY * size;
        Ok(PeOffsets {
            check_sum,
            after_check_sum: check_sum + size_of::<u32>(),
            security_data_dir: directory,
            after_security_data_dir: directory + size,
            after_header: self.pe.nt_headers().optional_header.size_of_headers() as usize,
        })
    }
}

#[cfg(test)]
mod tests;
