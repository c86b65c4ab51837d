//! Files of drivers for tests: with headers, an identity and a signature, but without code.

use std::str::FromStr;

use authenticode::{DigestInfo, SPC_INDIRECT_DATA_OBJID, SpcAttributeTypeAndOptionalValue, SpcIndirectDataContent};
use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{
    CertificateSet, EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo, SignerInfos,
};
use der::asn1::{BitString, ObjectIdentifier, OctetString, SetOfVec};
use der::{Any, Encode};
use protocol::DriverIdentity;
use sha2::{Digest, Sha256};
use x509_cert::certificate::{Certificate, TbsCertificate, Version};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_cert::time::Validity;
use zerocopy::IntoBytes;

use fake_system::payloads::tiny_image as tiny;

/// Offsets in the file of [`tiny`] ("PE Format", Microsoft Learn).
pub const MACHINE: usize = 0x44;
pub const SIZE_OF_OPTIONAL_HEADER: usize = 0x54;
pub const CHARACTERISTICS: usize = 0x56;
pub const MAGIC: usize = 0x58;
pub const CHECKSUM: usize = 0x98;
pub const SUBSYSTEM: usize = 0x9C;
pub const SECURITY_DIRECTORY: usize = 0xC8 + 4 * 8;
const SECTIONS: usize = 0x46;
const SIZE_OF_HEADERS: usize = 0x94;

/// Offset of the header of the section with the identity.
pub const SECOND_SECTION: usize = 0x170;

/// Offset of the identity.
pub const IDENTITY: usize = 0x400;

/// Size of the file without what follows the sections.
pub const SIZE: usize = 0x600;

/// OIDs of the algorithms, of signed data, and of image data.
const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const IMAGE_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.2.1.15");

fn put(file: &mut [u8], offset: usize, field: &[u8]) {
    file[offset..offset + field.len()].copy_from_slice(field);
}

/// Creates the file of a driver without a signature that ends with `name`.
pub fn driver(name: &str) -> Vec<u8> {
    let mut file = tiny();
    file.resize(SIZE, 0);
    file[SUBSYSTEM] = 1;
    file[CHARACTERISTICS + 1] = 0x20; // IMAGE_FILE_DLL: as Rust links a driver
    file[SECTIONS] = 2;
    put(&mut file, SIZE_OF_HEADERS, &0x200_u32.to_le_bytes());
    put(&mut file, SECOND_SECTION, b".halprof");
    for (index, field) in [0x10_u32, 0x2000, 0x200, 0x400].into_iter().enumerate() {
        put(&mut file, SECOND_SECTION + 8 + 4 * index, &field.to_le_bytes()); // sizes and places of the section
    }
    put(&mut file, IDENTITY, DriverIdentity::CURRENT.as_bytes());
    [&file, name.as_bytes()].concat()
}

fn algorithm(oid: ObjectIdentifier) -> AlgorithmIdentifierOwned {
    AlgorithmIdentifierOwned { oid, parameters: None }
}

fn name(common: &str) -> Name {
    Name::from_str(&format!("CN={common},O=Test")).unwrap()
}

fn certificate(number: u8, subject: &str, issuer: &str) -> Certificate {
    let key = BitString::from_bytes(&[0; 4]).unwrap();
    Certificate {
        tbs_certificate: TbsCertificate {
            version: Version::V3,
            serial_number: SerialNumber::new(&[number]).unwrap(),
            signature: algorithm(RSA),
            issuer: name(issuer),
            validity: Validity::from_now(std::time::Duration::from_hours(1)).unwrap(),
            subject: name(subject),
            subject_public_key_info: SubjectPublicKeyInfoOwned {
                algorithm: algorithm(RSA),
                subject_public_key: key.clone(),
            },
            issuer_unique_id: None,
            subject_unique_id: None,
            extensions: None,
        },
        signature_algorithm: algorithm(RSA),
        signature: key,
    }
}

/// Returns the Authenticode hash of a file without a signature whose sections have no gaps.
fn hash(file: &[u8]) -> Vec<u8> {
    let mut hash = Sha256::new();
    for part in [&file[..CHECKSUM], &file[CHECKSUM + 4..SECURITY_DIRECTORY], &file[SECURITY_DIRECTORY + 8..]] {
        hash.update(part);
    }
    hash.finalize().to_vec()
}

/// Signs a file with the first of `chain`, which has the subject and the issuer of each certificate.
pub fn sign(mut file: Vec<u8>, chain: &[(&str, &str)]) -> Vec<u8> {
    file.resize(file.len().next_multiple_of(8), 0);
    let content = SpcIndirectDataContent {
        data: SpcAttributeTypeAndOptionalValue { value_type: IMAGE_DATA, value: Any::null() },
        message_digest: DigestInfo {
            digest_algorithm: algorithm(SHA256),
            digest: OctetString::new(hash(&file)).unwrap(),
        },
    };
    let certificates = (1..).zip(chain).map(|(number, (subject, issuer))| certificate(number, subject, issuer));
    let certificates: Vec<_> = certificates.map(CertificateChoices::Certificate).collect();
    let signer = SignerInfo {
        version: CmsVersion::V1,
        sid: SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
            issuer: name(chain.first().map_or("unknown", |(_, issuer)| issuer)),
            serial_number: SerialNumber::new(&[1]).unwrap(),
        }),
        digest_alg: algorithm(SHA256),
        signed_attrs: None,
        signature_algorithm: algorithm(RSA),
        signature: OctetString::new([0; 4]).unwrap(),
        unsigned_attrs: None,
    };
    let content = SignedData {
        version: CmsVersion::V1,
        digest_algorithms: SetOfVec::try_from([algorithm(SHA256)]).unwrap(),
        encap_content_info: EncapsulatedContentInfo {
            econtent_type: SPC_INDIRECT_DATA_OBJID,
            econtent: Some(Any::encode_from(&content).unwrap()),
        },
        certificates: (!certificates.is_empty()).then(|| CertificateSet(SetOfVec::try_from(certificates).unwrap())),
        crls: None,
        signer_infos: SignerInfos(SetOfVec::try_from([signer]).unwrap()),
    };
    let info = ContentInfo { content_type: SIGNED_DATA, content: Any::encode_from(&content).unwrap() };
    let mut table = info.to_der().unwrap();
    let length = table.len() + 8;
    table.resize(table.len().next_multiple_of(8), 0);
    let header = [u32::try_from(length).unwrap().to_le_bytes(), [0x00, 0x02, 0x02, 0x00]].concat();
    let place = [file.len(), header.len() + table.len()].map(|number| u32::try_from(number).unwrap().to_le_bytes());
    put(&mut file, SECURITY_DIRECTORY, &place.concat());
    [file, header, table].concat()
}

#[test]
fn a_library_that_fails_is_a_reason_not_to_install() {
    let failed = super::unless_it_fails(|| panic!("an unknown machine")).unwrap_err();
    assert!(failed.to_string().ends_with("an unknown machine"), "{failed}");
}
