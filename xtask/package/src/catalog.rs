//! The catalog: the hashes of the package's files, which Windows requires to add a driver package to its store.
//!
//! A catalog is a certificate trust list in a PKCS #7 envelope. This one is of version 2 with SHA-256, as inf2cat makes
//! it for Windows 10: a subject for each file, identified by its hash. Identifiers and flags are those of mscat.h and
//! wintrust.h (Windows SDK); a file's hash has the form of "Windows Authenticode Portable Executable Signature Format",
//! SpcIndirectDataContent. What no document says is as in catalogs of drivers: the contents of `CAT_MEMBERINFO2` and of
//! the attributes OS, `OSAttr` and File.

use std::time::SystemTime;

use anyhow::{Context, Result, anyhow};
use authenticode::{AuthenticodeSignature, DigestInfo, SpcAttributeTypeAndOptionalValue, SpcIndirectDataContent};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{EncapsulatedContentInfo, SignedData, SignerInfos};
use der::asn1::{BmpString, Null, ObjectIdentifier, OctetString, SetOfVec, UtcTime};
use der::{Any, Decode, Encode, Sequence, Tag, TagNumber};
use sha2::{Digest, Sha256};
use x509_cert::attr::Attribute;
use x509_cert::ext::Extension;
use x509_cert::spki::AlgorithmIdentifierOwned;

/// Signed data (RFC 5652, 5.1).
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
/// SHA-256 (RFC 8017, appendix C).
const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
/// `szOID_CTL`.
const TRUST_LIST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.10.1");
/// `szOID_CATALOG_LIST`.
const CATALOG_LIST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.12.1.1");
/// `szOID_CATALOG_LIST_MEMBER2`.
const CATALOG_LIST_MEMBER2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.12.1.3");
/// `CAT_NAMEVALUE_OBJID`.
const NAME_VALUE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.12.2.1");
/// `CAT_MEMBERINFO2_OBJID`.
const MEMBER_INFO2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.12.2.3");
/// `SPC_INDIRECT_DATA_OBJID`.
const INDIRECT_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.2.1.4");
/// `SPC_CAB_DATA_OBJID`: the file is hashed as a whole.
const WHOLE_FILE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.2.1.25");

/// `CRYPTCAT_ATTR_AUTHENTICATED | CRYPTCAT_ATTR_DATAASCII | CRYPTCAT_ATTR_NAMEASCII`.
const ATTRIBUTE_FLAGS: u32 = 0x1001_0001;

/// The versions of Windows for which the package is: 10 and 11 on x64, in the spelling of inf2cat.
const WINDOWS: &str = "_v100_X64";
/// The same for one file: platform 2 is NT.
const WINDOWS_OF_FILE: &str = "2:10.0";

/// Size of the header before a signature in a PE file (`WIN_CERTIFICATE`).
const CERTIFICATE_HEADER: usize = 8;

/// A file of the catalog.
pub struct Member<'a> {
    /// Name without folder.
    pub name: &'a str,
    /// What is hashed.
    pub contents: Contents<'a>,
}

/// The contents of a file.
pub enum Contents<'a> {
    /// All bytes.
    Whole(&'a [u8]),
    /// The certificate table of a signed PE file, whose signature has the file's hash.
    Signed(&'a [u8]),
}

/// The content of a certificate trust list.
#[derive(Sequence)]
struct TrustList {
    usage: Vec<ObjectIdentifier>,
    identifier: OctetString,
    this_update: UtcTime,
    algorithm: AlgorithmIdentifierOwned,
    subjects: Vec<Subject>,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    extensions: Vec<Extension>,
}

/// A subject of the list.
#[derive(Clone, Sequence)]
struct Subject {
    identifier: OctetString,
    attributes: SetOfVec<Attribute>,
}

/// `CAT_NAMEVALUE`.
#[derive(Sequence)]
struct NameValue {
    name: BmpString,
    flags: u32,
    value: OctetString,
}

/// Returns a catalog of the files, which is not signed. The same files and the same time give the same bytes.
pub fn unsigned(members: &[Member], time: SystemTime) -> Result<Vec<u8>> {
    let subjects: Vec<Subject> = members.iter().map(subject).collect::<Result<_>>()?;
    let identifier = Sha256::digest(subjects.to_der()?);
    let list = TrustList {
        usage: vec![CATALOG_LIST],
        identifier: OctetString::new(identifier.get(..16).context("a hash has 32 bytes")?)?,
        this_update: UtcTime::from_system_time(time)?,
        algorithm: AlgorithmIdentifierOwned { oid: CATALOG_LIST_MEMBER2, parameters: Some(Null.into()) },
        subjects,
        extensions: vec![Extension {
            extn_id: NAME_VALUE,
            critical: false,
            extn_value: OctetString::new(name_value("OS", WINDOWS)?.to_der()?)?,
        }],
    };
    let data = SignedData {
        version: CmsVersion::V1,
        digest_algorithms: SetOfVec::new(),
        encap_content_info: EncapsulatedContentInfo {
            econtent_type: TRUST_LIST,
            econtent: Some(Any::encode_from(&list)?),
        },
        certificates: None,
        crls: None,
        signer_infos: SignerInfos(SetOfVec::new()),
    };
    Ok(ContentInfo { content_type: SIGNED_DATA, content: Any::encode_from(&data)? }.to_der()?)
}

/// Returns the hashes of the files of a catalog, signed or not.
pub fn hashes(catalog: &[u8]) -> Result<Vec<Vec<u8>>> {
    let info = ContentInfo::from_der(catalog)?;
    let data: SignedData = info.content.decode_as()?;
    let content = data.encap_content_info.econtent.context("the catalog has no content")?;
    let list: TrustList = content.decode_as()?;
    Ok(list.subjects.iter().map(|subject| subject.identifier.as_bytes().to_vec()).collect())
}

fn subject(member: &Member) -> Result<Subject> {
    let (identifier, indirect_data, kind) = match member.contents {
        Contents::Whole(bytes) => {
            let hash = Sha256::digest(bytes);
            (hash.to_vec(), Any::encode_from(&of_whole_file(&hash)?)?, TagNumber::N2)
        }
        Contents::Signed(table) => {
            let signature = table.get(CERTIFICATE_HEADER..).context("the certificate table has no signature")?;
            let signature = AuthenticodeSignature::from_bytes(signature).map_err(|error| anyhow!("{error}"))?;
            let content = signature.encapsulated_content().context("the signature has no hash")?;
            (signature.digest().to_vec(), Any::new(Tag::Sequence, content)?, TagNumber::N0)
        }
    };
    let attributes = [
        attribute(INDIRECT_DATA, indirect_data)?,
        attribute(MEMBER_INFO2, empty(kind)?)?,
        attribute(NAME_VALUE, Any::encode_from(&name_value("File", member.name)?)?)?,
        attribute(NAME_VALUE, Any::encode_from(&name_value("OSAttr", WINDOWS_OF_FILE)?)?)?,
    ];
    Ok(Subject { identifier: OctetString::new(identifier)?, attributes: SetOfVec::try_from(attributes.to_vec())? })
}

/// Returns the hash of a file without a signature. The link to the file is empty.
fn of_whole_file(hash: &[u8]) -> Result<SpcIndirectDataContent> {
    let file = Tag::ContextSpecific { constructed: true, number: TagNumber::N2 };
    let link = Any::new(file, empty(TagNumber::N0)?.to_der()?)?;
    Ok(SpcIndirectDataContent {
        data: SpcAttributeTypeAndOptionalValue { value_type: WHOLE_FILE, value: link },
        message_digest: DigestInfo {
            digest_algorithm: AlgorithmIdentifierOwned { oid: SHA256, parameters: Some(Null.into()) },
            digest: OctetString::new(hash)?,
        },
    })
}

/// Returns the choice with this number, without a value.
fn empty(number: TagNumber) -> Result<Any> {
    Ok(Any::new(Tag::ContextSpecific { constructed: false, number }, [])?)
}

fn attribute(oid: ObjectIdentifier, value: Any) -> Result<Attribute> {
    Ok(Attribute { oid, values: SetOfVec::try_from(vec![value])? })
}

/// Returns an attribute with a name. Its value is text in UTF-16 with a zero at its end.
fn name_value(name: &str, value: &str) -> Result<NameValue> {
    let value: Vec<u8> = value.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
    Ok(NameValue { name: BmpString::from_utf8(name)?, flags: ATTRIBUTE_FLAGS, value: OctetString::new(value)? })
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    const INF: &[u8] = b"[Version]";

    fn catalog(seconds: u64) -> Vec<u8> {
        let member = Member { name: "a.inf", contents: Contents::Whole(INF) };
        unsigned(&[member], UNIX_EPOCH + Duration::from_secs(seconds)).unwrap()
    }

    fn contains(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn a_catalog_is_a_trust_list_with_the_hash_of_each_file() {
        let info = ContentInfo::from_der(&catalog(1_767_225_600)).unwrap();
        let data: SignedData = info.content.decode_as().unwrap();
        let list: TrustList = data.encap_content_info.econtent.unwrap().decode_as().unwrap();
        let hash = Sha256::digest(INF);
        let [subject] = &list.subjects[..] else { panic!() };
        assert_eq!(subject.identifier.as_bytes(), &hash[..]);
        let names: Vec<_> = subject.attributes.iter().map(|attribute| attribute.oid).collect();
        assert_eq!(names, [MEMBER_INFO2, NAME_VALUE, NAME_VALUE, INDIRECT_DATA], "in the order of DER");
        assert_eq!(list.this_update.to_unix_duration().as_secs(), 1_767_225_600);
    }

    /// Parts of a catalog of Windows, written by hand.
    #[test]
    fn the_attributes_have_the_bytes_of_other_catalogs() {
        let bytes = catalog(0);
        let whole_file = b"\x30\x10\x06\x0A\x2B\x06\x01\x04\x01\x82\x37\x0C\x02\x03\x31\x02\x82\x00";
        let link = b"\x06\x0A\x2B\x06\x01\x04\x01\x82\x37\x02\x01\x19\xA2\x02\x80\x00";
        let name = b"\x1E\x08\0F\0i\0l\0e\x02\x04\x10\x01\x00\x01\x04\x0Ca\0.\0i\0n\0f\0\0\0";
        for part in [&whole_file[..], link, name] {
            assert!(contains(&bytes, part), "{part:x?}");
        }
    }

    #[test]
    fn the_same_files_at_the_same_time_give_the_same_catalog() {
        assert_eq!(catalog(5), catalog(5));
        assert_ne!(catalog(5), catalog(6));
    }

    #[test]
    fn a_file_that_is_not_signed_is_no_signed_member() {
        let member = Member { name: "a.sys", contents: Contents::Signed(&[]) };
        assert!(unsigned(&[member], UNIX_EPOCH).is_err());
    }
}
