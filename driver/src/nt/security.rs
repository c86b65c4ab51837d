//! Access to the device: SYSTEM and Administrators only, without inherited entries.
//!
//! In SDDL: `D:P(A;;FA;;;SY)(A;;FA;;;BA)`. The descriptor is a constant in self-relative form (MS-DTYP 2.4.6), so that
//! only the call that sets it can fail. IoCreateDeviceSecure would do the same, but it needs wdmsec.lib, which exists
//! only on Windows.

use core::mem::offset_of;
use wdk_sys::ntddk::{ObOpenObjectByPointer, ZwClose, ZwSetSecurityObject};

use wdk_sys::{NTSTATUS, PDEVICE_OBJECT};

use super::irp::check;

/// SID with `N` sub-authorities (MS-DTYP 2.4.2.2).
#[repr(C)]
struct Sid<const N: usize> {
    revision: u8,
    sub_authority_count: u8,
    identifier_authority: [u8; 6],
    sub_authority: [u32; N],
}

/// ACCESS_ALLOWED_ACE (MS-DTYP 2.4.4.2).
#[repr(C)]
struct AccessAllowed<const N: usize> {
    kind: u8,
    flags: u8,
    size: u16,
    mask: u32,
    sid: Sid<N>,
}

/// ACL (MS-DTYP 2.4.5) with the two entries of the device.
#[repr(C)]
struct Acl {
    revision: u8,
    zero: u8,
    size: u16,
    count: u16,
    zero2: u16,
    system: AccessAllowed<1>,
    administrators: AccessAllowed<2>,
}

/// SECURITY_DESCRIPTOR, self-relative (MS-DTYP 2.4.6).
#[repr(C)]
struct Descriptor {
    revision: u8,
    zero: u8,
    control: u16,
    owner: u32,
    group: u32,
    sacl: u32,
    dacl: u32,
    acl: Acl,
}

const NT_AUTHORITY: [u8; 6] = [0, 0, 0, 0, 0, 5];
const LOCAL_SYSTEM: [u32; 1] = [18];
const BUILTIN_ADMINISTRATORS: [u32; 2] = [32, 544];
const FILE_ALL_ACCESS: u32 = 0x001F_01FF;
const DACL_PRESENT: u16 = 0x0004;
const DACL_PROTECTED: u16 = 0x1000;
const SELF_RELATIVE: u16 = 0x8000;

#[expect(clippy::cast_possible_truncation, reason = "an entry has 24 bytes at most, and a SID two sub-authorities")]
const fn allow<const N: usize>(sub_authority: [u32; N]) -> AccessAllowed<N> {
    let sid = Sid { revision: 1, sub_authority_count: N as u8, identifier_authority: NT_AUTHORITY, sub_authority };
    AccessAllowed { kind: 0, flags: 0, size: size_of::<AccessAllowed<N>>() as u16, mask: FILE_ALL_ACCESS, sid }
}

#[expect(clippy::cast_possible_truncation, reason = "the descriptor has 72 bytes")]
static DESCRIPTOR: Descriptor = Descriptor {
    revision: 1,
    zero: 0,
    control: DACL_PRESENT | DACL_PROTECTED | SELF_RELATIVE,
    owner: 0,
    group: 0,
    sacl: 0,
    dacl: offset_of!(Descriptor, acl) as u32,
    acl: Acl {
        revision: 2,
        zero: 0,
        size: size_of::<Acl>() as u16,
        count: 2,
        zero2: 0,
        system: allow(LOCAL_SYSTEM),
        administrators: allow(BUILTIN_ADMINISTRATORS),
    },
};

const OBJ_KERNEL_HANDLE: u32 = 0x200;
const WRITE_DAC: u32 = 0x0004_0000;
const KERNEL_MODE: i8 = 0;
const DACL_SECURITY_INFORMATION: u32 = 0x4;
const PROTECTED_DACL_SECURITY_INFORMATION: u32 = 0x8000_0000;

/// Sets the descriptor of a device object that cannot be opened yet.
///
/// # Errors
/// The NTSTATUS of the call that failed.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn protect(device: PDEVICE_OBJECT) -> Result<(), NTSTATUS> {
    let mut handle = core::ptr::null_mut();
    // SAFETY: the device exists; kernel-mode callers may pass a null type
    let status = unsafe {
        ObOpenObjectByPointer(
            device.cast(),
            OBJ_KERNEL_HANDLE,
            core::ptr::null_mut(),
            WRITE_DAC,
            core::ptr::null_mut(),
            KERNEL_MODE,
            &raw mut handle,
        )
    };
    check(status)?;
    let information = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
    let descriptor = core::ptr::from_ref(&DESCRIPTOR).cast_mut().cast();
    // SAFETY: the handle was just opened; the descriptor is complete, and only read
    let status = unsafe { ZwSetSecurityObject(handle, information, descriptor) };
    // SAFETY: opened above, closed once
    let closed = unsafe { ZwClose(handle) };
    check(status).and(check(closed))
}
