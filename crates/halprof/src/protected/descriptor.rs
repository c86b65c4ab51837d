//! Who can change a file or folder, according to its security descriptor (MS-DTYP 2.4.6, self-relative).
//!
//! Parsing is strict: what is not understood counts as access of others.

use std::fmt;

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

/// Rights to files and folders (winnt.h). The first name of a pair is that for files.
mod rights {
    /// FILE_WRITE_DATA, FILE_ADD_FILE.
    pub(super) const WRITE_DATA: u32 = 0x2;
    /// FILE_APPEND_DATA, FILE_ADD_SUBDIRECTORY.
    pub(super) const APPEND_DATA: u32 = 0x4;
    /// FILE_WRITE_EA.
    pub(super) const WRITE_EA: u32 = 0x10;
    /// FILE_DELETE_CHILD: deletes and renames what is in a folder, whatever its own access list says.
    pub(super) const DELETE_CHILD: u32 = 0x40;
    /// FILE_WRITE_ATTRIBUTES, with which an empty folder can be made a link.
    pub(super) const WRITE_ATTRIBUTES: u32 = 0x100;
    /// DELETE: deletes and renames.
    pub(super) const DELETE: u32 = 0x1_0000;
    /// WRITE_DAC: changes the access list.
    pub(super) const WRITE_DAC: u32 = 0x4_0000;
    /// WRITE_OWNER.
    pub(super) const WRITE_OWNER: u32 = 0x8_0000;
    /// GENERIC_ALL, which entries for children can have.
    pub(super) const GENERIC_ALL: u32 = 0x1000_0000;
    /// GENERIC_WRITE.
    pub(super) const GENERIC_WRITE: u32 = 0x4000_0000;
}

/// Rights with which the access list itself changes.
const OF_OWNERS: u32 = rights::WRITE_DAC | rights::WRITE_OWNER | rights::GENERIC_ALL;

/// Kinds of entries of an access list (MS-DTYP 2.4.4.1) that deny access, for callers, objects or both.
const DENYING: [u8; 4] = [1, 6, 10, 12];
/// Kinds of entries that allow access and have the SID after the mask: ACCESS_ALLOWED_ACE, ACCESS_ALLOWED_CALLBACK_ACE.
const ALLOWING: [u8; 2] = [0, 9];
/// INHERIT_ONLY_ACE: the entry is for children alone.
const INHERIT_ONLY: u8 = 0x8;
/// SE_DACL_PRESENT. Without an access list everyone has every right.
const DACL_PRESENT: u16 = 0x4;

/// SID of an authority and its numbers, as text: S-1-5-18.
#[derive(Clone, PartialEq, Eq)]
pub struct Sid {
    authority: u64,
    numbers: Vec<u32>,
}

impl Sid {
    /// Returns the SID with which the bytes begin (MS-DTYP 2.4.2.2).
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let [1, count, authority @ ..] = bytes.first_chunk::<8>()? else { return None };
        let authority = authority.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let (numbers, _) = <[U32]>::ref_from_prefix_with_elems(bytes.get(8..)?, usize::from(*count)).ok()?;
        Some(Self { authority, numbers: numbers.iter().map(|number| number.get()).collect() })
    }

    /// Returns whether everyone with this SID is an administrator anyway: SYSTEM, BUILTIN\Administrators and
    /// NT SERVICE\TrustedInstaller, which owns the folders of Windows.
    fn is_administrator(&self) -> bool {
        const TRUSTED_INSTALLER: [u32; 6] =
            [80, 956_008_885, 3_418_522_649, 1_831_038_044, 1_853_292_631, 2_271_478_464];
        self.authority == 5 && ([&[18][..], &[32, 544], &TRUSTED_INSTALLER].contains(&self.numbers.as_slice()))
    }

    /// Returns whether the SID stands for the owner, which is checked by itself: CREATOR OWNER, OWNER RIGHTS.
    fn is_owner(&self) -> bool {
        self.authority == 3 && [&[0][..], &[4]].contains(&self.numbers.as_slice())
    }
}

impl fmt::Display for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "S-1-{}", self.authority)?;
        self.numbers.iter().try_for_each(|number| write!(f, "-{number}"))
    }
}

impl fmt::Debug for Sid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What others must not be able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The root of a volume: replace what is in it. The root itself cannot be deleted.
    Root,
    /// A folder on the way to another: replace it, or what is in it. They may add files.
    Ancestor,
    /// The file, or the folder with it: change anything, also in what is created in the folder later.
    Target,
}

impl Part {
    fn forbidden(self) -> u32 {
        let root = OF_OWNERS | rights::DELETE_CHILD;
        match self {
            Self::Root => root,
            Self::Ancestor => root | rights::DELETE,
            Self::Target => {
                root | rights::DELETE
                    | rights::WRITE_DATA
                    | rights::APPEND_DATA
                    | rights::WRITE_EA
                    | rights::WRITE_ATTRIBUTES
                    | rights::GENERIC_WRITE
            }
        }
    }
}

/// Why others than administrators can change something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exposure {
    /// It belongs to this account.
    Owner(Sid),
    /// This account has rights to it.
    Rights(Sid),
    /// Everyone has every right, because there is no access list.
    Everyone,
    /// The descriptor cannot be understood.
    Unknown,
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(sid) => {
                write!(f, "it belongs to {sid}, which is not SYSTEM, Administrators or TrustedInstaller")
            }
            Self::Rights(sid) => {
                write!(f, "{sid}, which is not SYSTEM, Administrators or TrustedInstaller, can change it")
            }
            Self::Everyone => f.write_str("it has no access list, so everyone can change it"),
            Self::Unknown => f.write_str("its access list cannot be understood"),
        }
    }
}

/// The fixed part of a SECURITY_DESCRIPTOR (MS-DTYP 2.4.6). Offsets count from its begin; 0 means "none".
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    _revision: u8,
    _zero: u8,
    control: U16,
    owner: U32,
    _group_and_sacl: [U32; 2],
    dacl: U32,
}

/// ACL (MS-DTYP 2.4.5).
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct List {
    _revision_and_zero: [u8; 2],
    size: U16,
    count: U16,
    _zero: U16,
}

/// ACE_HEADER (MS-DTYP 2.4.4.1).
#[derive(FromBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Entry {
    kind: u8,
    flags: u8,
    size: U16,
}

/// Checks that only administrators, and `own`, can do what is forbidden to others.
pub(super) fn check(descriptor: &[u8], part: Part, own: Option<&Sid>) -> Result<(), Exposure> {
    let is_trusted = |sid: &Sid| sid.is_administrator() || own == Some(sid);
    let (header, _) = Header::ref_from_prefix(descriptor).map_err(|_| Exposure::Unknown)?;
    let at = |offset: U32| usize::try_from(offset.get()).ok().and_then(|offset| descriptor.get(offset..));
    let owner = at(header.owner).filter(|_| header.owner.get() != 0).and_then(Sid::parse).ok_or(Exposure::Unknown)?;
    if !is_trusted(&owner) {
        return Err(Exposure::Owner(owner));
    }
    if header.control.get() & DACL_PRESENT == 0 || header.dacl.get() == 0 {
        return Err(Exposure::Everyone);
    }
    let mut rest = at(header.dacl).ok_or(Exposure::Unknown)?;
    let (list, _) = List::ref_from_prefix(rest).map_err(|_| Exposure::Unknown)?;
    let count = list.count.get();
    rest = rest.get(size_of::<List>()..usize::from(list.size.get())).ok_or(Exposure::Unknown)?;
    for _ in 0..count {
        let (entry, _) = Entry::ref_from_prefix(rest).map_err(|_| Exposure::Unknown)?;
        let (this, others) = rest.split_at_checked(usize::from(entry.size.get())).ok_or(Exposure::Unknown)?;
        rest = others;
        check_entry(entry, this.get(size_of::<Entry>()..).ok_or(Exposure::Unknown)?, part, is_trusted)?;
    }
    Ok(())
}

/// Checks an entry of an access list; `body` is what follows its header.
fn check_entry(entry: &Entry, body: &[u8], part: Part, is_trusted: impl Fn(&Sid) -> bool) -> Result<(), Exposure> {
    let is_for_children = entry.flags & INHERIT_ONLY != 0;
    if DENYING.contains(&entry.kind) || (is_for_children && part != Part::Target) {
        return Ok(());
    }
    if !ALLOWING.contains(&entry.kind) {
        return Err(Exposure::Unknown);
    }
    let (mask, sid) = U32::read_from_prefix(body).map_err(|_| Exposure::Unknown)?;
    let sid = Sid::parse(sid).ok_or(Exposure::Unknown)?;
    let is_harmless = mask.get() & part.forbidden() == 0;
    if is_harmless || is_trusted(&sid) || sid.is_owner() { Ok(()) } else { Err(Exposure::Rights(sid)) }
}
