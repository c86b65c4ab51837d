//! Privileges that are disabled in an elevated token.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::LUID;
use windows_sys::Win32::Security::{
    AdjustTokenPrivileges, LUID_AND_ATTRIBUTES, LookupPrivilegeValueW, SE_PRIVILEGE_ENABLED, TOKEN_ADJUST_PRIVILEGES,
    TOKEN_PRIVILEGES,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use super::{succeeded, wide};

/// The privilege to profile the system, which the driver requires.
pub const SYSTEM_PROFILE: &str = "SeSystemProfilePrivilege";

/// Enables a privilege in the token of this process, if the token has it.
///
/// # Errors
/// The Win32 error, if the token cannot be changed.
pub fn enable_privilege(name: &str) -> io::Result<()> {
    let name = wide(name);
    let mut luid = LUID { LowPart: 0, HighPart: 0 };
    // SAFETY: a null system name means this machine, the name is zero-terminated, and both it and `luid` outlive the
    // call.
    succeeded(unsafe { LookupPrivilegeValueW(null(), name.as_ptr(), &raw mut luid) })?;
    let token = process_token()?;
    let wanted = TOKEN_PRIVILEGES {
        PrivilegeCount: 1,
        Privileges: [LUID_AND_ATTRIBUTES { Luid: luid, Attributes: SE_PRIVILEGE_ENABLED }],
    };
    // SAFETY: the token handle has the required access, `wanted` has the one entry that it counts, and no previous
    // state is requested.
    let answer =
        unsafe { AdjustTokenPrivileges(token.as_raw_handle(), 0, &raw const wanted, 0, null_mut(), null_mut()) };
    succeeded(answer)
}

fn process_token() -> io::Result<OwnedHandle> {
    // SAFETY: the function has no preconditions. Its result is a pseudo-handle that need not be closed.
    let process = unsafe { GetCurrentProcess() };
    let mut token = null_mut();
    // SAFETY: `process` is the pseudo-handle of this process, and `token` outlives the call.
    succeeded(unsafe { OpenProcessToken(process, TOKEN_ADJUST_PRIVILEGES, &raw mut token) })?;
    // SAFETY: the call succeeded, so `token` is a valid handle, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(token) })
}
