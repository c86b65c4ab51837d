//! Access to the provider: the security descriptor of its GUID, for SYSTEM and Administrators only.
//!
//! Windows keeps the descriptor in the registry. Without one, the default applies, which also lets Performance Log
//! Users, LOCAL SERVICE and NETWORK SERVICE enable the provider (EventAccessControl). According to reports, Windows
//! reads the descriptor once: when the provider is registered, or before that, when a trace session enables it.
//!
//! The descriptor in SDDL is `O:BAG:BAD:(A;;0x120fff;;;SY)(A;;0x120fff;;;BA)`, as halprof.inf has it. Its binary form
//! is that of MS-DTYP 2.4.6, self-relative.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Key below HKEY_LOCAL_MACHINE with the descriptors of GUIDs, as values of type REG_BINARY.
pub const REGISTRY_KEY: &str = "SYSTEM\\CurrentControlSet\\Control\\WMI\\Security";

/// Name of the value for the provider: its GUID, without braces.
pub const VALUE_NAME: &str = "1e73bb95-d033-5693-4748-a63e860b83c2";

/// Rights to a GUID (wmistr.h; the standard rights: winnt.h). For a provider, Windows checks those to enable and to
/// register it; the others concern trace sessions and WMI classes.
pub mod rights {
    /// Queries a trace session.
    pub const WMIGUID_QUERY: u32 = 0x0001;
    /// Changes data of a WMI class.
    pub const WMIGUID_SET: u32 = 0x0002;
    /// Receives notifications.
    pub const WMIGUID_NOTIFICATION: u32 = 0x0004;
    /// Reads the description of a WMI class.
    pub const WMIGUID_READ_DESCRIPTION: u32 = 0x0008;
    /// Calls methods of a WMI class.
    pub const WMIGUID_EXECUTE: u32 = 0x0010;
    /// Starts a trace session in real time.
    pub const TRACELOG_CREATE_REALTIME: u32 = 0x0020;
    /// Starts a trace session that writes a file.
    pub const TRACELOG_CREATE_ONDISK: u32 = 0x0040;
    /// Enables the provider in a trace session.
    pub const TRACELOG_GUID_ENABLE: u32 = 0x0080;
    /// Not used any more.
    pub const TRACELOG_ACCESS_KERNEL_LOGGER: u32 = 0x0100;
    /// Writes events to a secure trace session.
    pub const TRACELOG_LOG_EVENT: u32 = 0x0200;
    /// Consumes events of a trace session in real time.
    pub const TRACELOG_ACCESS_REALTIME: u32 = 0x0400;
    /// Registers the provider.
    pub const TRACELOG_REGISTER_GUIDS: u32 = 0x0800;
    /// Reads the descriptor.
    pub const READ_CONTROL: u32 = 0x0002_0000;
    /// Waits for the object.
    pub const SYNCHRONIZE: u32 = 0x0010_0000;

    /// Every right above, as in the example of "INF DDInstall.WMI Section". These are the rights that SYSTEM and
    /// Administrators also have by default.
    pub const ALL: u32 = WMIGUID_QUERY
        | WMIGUID_SET
        | WMIGUID_NOTIFICATION
        | WMIGUID_READ_DESCRIPTION
        | WMIGUID_EXECUTE
        | TRACELOG_CREATE_REALTIME
        | TRACELOG_CREATE_ONDISK
        | TRACELOG_GUID_ENABLE
        | TRACELOG_ACCESS_KERNEL_LOGGER
        | TRACELOG_LOG_EVENT
        | TRACELOG_ACCESS_REALTIME
        | TRACELOG_REGISTER_GUIDS
        | READ_CONTROL
        | SYNCHRONIZE;
}

/// SID with `N` sub-authorities (MS-DTYP 2.4.2.2).
#[derive(Clone, Copy, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Sid<const N: usize> {
    revision: u8,
    sub_authority_count: u8,
    identifier_authority: [u8; 6],
    sub_authorities: [U32; N],
}

/// ACCESS_ALLOWED_ACE (MS-DTYP 2.4.4.2).
#[derive(Clone, Copy, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct AccessAllowed<const N: usize> {
    kind: u8,
    flags: u8,
    size: U16,
    mask: U32,
    sid: Sid<N>,
}

/// ACL (MS-DTYP 2.4.5) with two entries.
#[derive(Clone, Copy, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Acl {
    revision: u8,
    zero: u8,
    size: U16,
    count: U16,
    zero2: U16,
    system: AccessAllowed<1>,
    administrators: AccessAllowed<2>,
}

/// The fixed part of a SECURITY_DESCRIPTOR (MS-DTYP 2.4.6). Offsets count from its begin; 0 means "none".
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Header {
    revision: u8,
    zero: u8,
    control: U16,
    owner: U32,
    group: U32,
    sacl: U32,
    dacl: U32,
}

/// The descriptor.
#[derive(Clone, Copy, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Descriptor {
    header: Header,
    dacl: Acl,
    owner: Sid<2>,
    group: Sid<2>,
}

/// SECURITY_NT_AUTHORITY.
const NT_AUTHORITY: [u8; 6] = [0, 0, 0, 0, 0, 5];

/// NT AUTHORITY\SYSTEM, S-1-5-18 (MS-DTYP 2.4.2.4).
const LOCAL_SYSTEM: Sid<1> = sid([18]);

/// BUILTIN\Administrators, S-1-5-32-544 (MS-DTYP 2.4.2.4).
const BUILTIN_ADMINISTRATORS: Sid<2> = sid([32, 544]);

const SE_DACL_PRESENT: u16 = 0x0004;
const SE_SACL_PRESENT: u16 = 0x0010;
const SE_SELF_RELATIVE: u16 = 0x8000;

/// Revision of SIDs and of descriptors.
const REVISION: u8 = 1;

/// Revision of an ACL without entries for objects.
const ACL_REVISION: u8 = 2;

/// ACCESS_ALLOWED_ACE_TYPE.
const ACCESS_ALLOWED: u8 = 0;

#[expect(clippy::cast_possible_truncation, reason = "a SID has two sub-authorities at most")]
const fn sid<const N: usize>(numbers: [u32; N]) -> Sid<N> {
    let mut sub_authorities = [U32::ZERO; N];
    let (mut rest, mut to): (&[u32], &mut [U32]) = (&numbers, &mut sub_authorities);
    while let ([number, numbers @ ..], [first, others @ ..]) = (rest, to) {
        *first = U32::new(*number);
        (rest, to) = (numbers, others);
    }
    Sid { revision: REVISION, sub_authority_count: N as u8, identifier_authority: NT_AUTHORITY, sub_authorities }
}

#[expect(clippy::cast_possible_truncation, reason = "an entry has 24 bytes at most")]
const fn allow_all<const N: usize>(sid: Sid<N>) -> AccessAllowed<N> {
    let size = U16::new(size_of::<AccessAllowed<N>>() as u16);
    AccessAllowed { kind: ACCESS_ALLOWED, flags: 0, size, mask: U32::new(rights::ALL), sid }
}

#[expect(clippy::cast_possible_truncation, reason = "the descriptor has 104 bytes")]
static DESCRIPTOR: Descriptor = Descriptor {
    header: Header {
        revision: REVISION,
        zero: 0,
        control: U16::new(SE_DACL_PRESENT | SE_SELF_RELATIVE),
        owner: U32::new(core::mem::offset_of!(Descriptor, owner) as u32),
        group: U32::new(core::mem::offset_of!(Descriptor, group) as u32),
        sacl: U32::ZERO,
        dacl: U32::new(core::mem::offset_of!(Descriptor, dacl) as u32),
    },
    dacl: Acl {
        revision: ACL_REVISION,
        zero: 0,
        size: U16::new(size_of::<Acl>() as u16),
        count: U16::new(2),
        zero2: U16::ZERO,
        system: allow_all(LOCAL_SYSTEM),
        administrators: allow_all(BUILTIN_ADMINISTRATORS),
    },
    owner: BUILTIN_ADMINISTRATORS,
    group: BUILTIN_ADMINISTRATORS,
};

/// Returns the descriptor that an installation stores.
#[must_use]
pub fn descriptor() -> &'static [u8] {
    DESCRIPTOR.as_bytes()
}

/// Returns whether a descriptor has the parts of [`descriptor`], in any order: Windows makes one from the text in
/// halprof.inf.
#[must_use]
pub fn is_restriction(bytes: &[u8]) -> bool {
    let Ok((header, _)) = Header::read_from_prefix(bytes) else { return false };
    let has = |offset: U32, part: &[u8]| {
        let rest = usize::try_from(offset.get()).ok().and_then(|offset| bytes.get(offset..));
        rest.is_some_and(|rest| rest.starts_with(part))
    };
    let control = header.control.get() & (SE_DACL_PRESENT | SE_SACL_PRESENT | SE_SELF_RELATIVE);
    header.revision == REVISION
        && control == SE_DACL_PRESENT | SE_SELF_RELATIVE
        && has(header.dacl, DESCRIPTOR.dacl.as_bytes())
        && has(header.owner, DESCRIPTOR.owner.as_bytes())
        && has(header.group, DESCRIPTOR.group.as_bytes())
}
