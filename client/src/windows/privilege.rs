//! Privileges that an elevated token holds disabled.

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

use super::convert::{succeeded, wide};

/// To profile the system: the driver asks for it.
pub const SYSTEM_PROFILE: &str = "SeSystemProfilePrivilege";

/// To look into processes of other users, and at addresses of the kernel.
pub const DEBUG: &str = "SeDebugPrivilege";

/// Enables a privilege in the token of this process, if the token holds it.
pub fn enable(name: &str) -> io::Result<()> {
    let name = wide(name);
    let mut luid = LUID { LowPart: 0, HighPart: 0 };
    // SAFETY: a null system name means this machine, the name ends with a zero, and both it and `luid` outlive
    // the call.
    succeeded(unsafe { LookupPrivilegeValueW(null(), name.as_ptr(), &raw mut luid) })?;
    let token = own_token()?;
    let wanted = TOKEN_PRIVILEGES {
        PrivilegeCount: 1,
        Privileges: [LUID_AND_ATTRIBUTES { Luid: luid, Attributes: SE_PRIVILEGE_ENABLED }],
    };
    // SAFETY: the token is open for this, `wanted` has the one entry it counts, and no previous state is asked for.
    let answer =
        unsafe { AdjustTokenPrivileges(token.as_raw_handle(), 0, &raw const wanted, 0, null_mut(), null_mut()) };
    succeeded(answer)
}

fn own_token() -> io::Result<OwnedHandle> {
    // SAFETY: it has no conditions, and its answer is a constant that needs no closing.
    let process = unsafe { GetCurrentProcess() };
    let mut token = null_mut();
    // SAFETY: `process` stands for this process, and `token` outlives the call.
    succeeded(unsafe { OpenProcessToken(process, TOKEN_ADJUST_PRIVILEGES, &raw mut token) })?;
    // SAFETY: the call succeeded, so that `token` is a handle, and nobody else has it.
    Ok(unsafe { OwnedHandle::from_raw_handle(token) })
}
