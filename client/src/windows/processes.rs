//! The running processes.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};

use super::convert::narrow;

/// Returns the ID and the file name of the program of every process, including those that cannot be opened.
pub fn names() -> io::Result<Vec<(u32, String)>> {
    // SAFETY: the function has no preconditions. This kind of snapshot ignores the process ID.
    let handle = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is a valid handle, and nothing else owns it.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(handle) };
    #[expect(clippy::cast_possible_truncation, reason = "568 bytes")]
    let mut entry = PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..Default::default() };
    let mut names = Vec::new();
    // SAFETY: the snapshot contains processes, and `entry` has its size set and outlives the call.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        names.push((entry.th32ProcessID, narrow(&entry.szExeFile).to_string_lossy().into_owned()));
        // SAFETY: as for `Process32FirstW`.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Ok(names)
}
