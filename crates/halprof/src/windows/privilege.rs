//! Privileges that are disabled in an elevated token.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::LUID;
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, GetTokenInformation, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_PRIVILEGE_ENABLED,
    TOKEN_ACCESS_MASK, TOKEN_ADJUST_PRIVILEGES, TOKEN_PRIVILEGES, TOKEN_PRIVILEGES_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER,
    TokenUser,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::{succeeded, wide};
use crate::protected::Sid;

/// The privilege to profile the system, which the driver requires.
pub const SYSTEM_PROFILE: &str = "SeSystemProfilePrivilege";

/// The privilege to open processes of other users and to see addresses of the kernel.
pub const DEBUG: &str = "SeDebugPrivilege";

/// A privilege that is enabled until this is dropped, if the token has it.
#[derive(Debug)]
pub struct EnabledPrivilege {
    name: &'static str,
    /// Whether it was disabled before.
    was_disabled: bool,
}

impl EnabledPrivilege {
    /// Enables a privilege. Without it, the functions that need it refuse or answer less.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        Self { name, was_disabled: set(name, SE_PRIVILEGE_ENABLED).unwrap_or_default() }
    }
}

impl Drop for EnabledPrivilege {
    fn drop(&mut self) {
        if self.was_disabled {
            // A privilege that stays enabled is one that the token has anyway.
            let _ = set(self.name, 0);
        }
    }
}

/// Enables a privilege in the token of this process, if the token has it.
///
/// # Errors
/// The Win32 error, if the token cannot be changed.
pub fn enable_privilege(name: &str) -> io::Result<()> {
    set(name, SE_PRIVILEGE_ENABLED).map(drop)
}

/// Sets the attributes of a privilege. Returns whether that changed anything.
fn set(name: &str, attributes: TOKEN_PRIVILEGES_ATTRIBUTES) -> io::Result<bool> {
    let name = wide(name);
    let mut luid = LUID { LowPart: 0, HighPart: 0 };
    // SAFETY: a null system name means this machine, the name is zero-terminated, and both it and `luid` outlive the
    // call.
    succeeded(unsafe { LookupPrivilegeValueW(null(), name.as_ptr(), &raw mut luid) })?;
    let token = process_token(TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY)?;
    let wanted = TOKEN_PRIVILEGES {
        PrivilegeCount: 1,
        Privileges: [LUID_AND_ATTRIBUTES { Luid: luid, Attributes: attributes }],
    };
    let (mut before, mut length) = (TOKEN_PRIVILEGES::default(), 0);
    let room = u32::try_from(size_of::<TOKEN_PRIVILEGES>()).map_err(io::Error::other)?;
    // SAFETY: the token handle has the required access, `wanted` has the one entry that it counts, and `before` has the
    // given size and room for the one privilege that can change.
    succeeded(unsafe {
        AdjustTokenPrivileges(token.as_raw_handle(), 0, &raw const wanted, room, &raw mut before, &raw mut length)
    })?;
    // Windows returns the previous state of those that changed only.
    Ok(before.PrivilegeCount == 1)
}

/// A buffer for TOKEN_USER with the SID to which it points: at most 68 bytes (SECURITY_MAX_SID_SIZE).
#[repr(C, align(8))]
struct User([u8; 128]);

/// Returns the account of this process.
pub(super) fn account() -> io::Result<Sid> {
    let token = process_token(TOKEN_QUERY)?;
    let (mut user, mut length) = (User([0; 128]), 0);
    let room = u32::try_from(size_of::<User>()).map_err(io::Error::other)?;
    // SAFETY: the token handle has the required access, and the buffer has the given size and takes any bytes.
    succeeded(unsafe {
        GetTokenInformation(token.as_raw_handle(), TokenUser, (&raw mut user).cast(), room, &raw mut length)
    })?;
    // SAFETY: the call succeeded, so the buffer, which is aligned, begins with an initialized structure.
    let sid = unsafe { (*(&raw const user).cast::<TOKEN_USER>()).User.Sid };
    let place = sid.addr().checked_sub((&raw const user).addr());
    place.and_then(|place| Sid::parse(user.0.get(place..)?)).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn process_token(access: TOKEN_ACCESS_MASK) -> io::Result<OwnedHandle> {
    // SAFETY: the function has no preconditions. Its result is a pseudo-handle that need not be closed.
    let process = unsafe { GetCurrentProcess() };
    let mut token = null_mut();
    // SAFETY: `process` is the pseudo-handle of this process, and `token` outlives the call.
    succeeded(unsafe { OpenProcessToken(process, access, &raw mut token) })?;
    // SAFETY: the call succeeded, so `token` is a valid handle, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(token) })
}
