//! Which processes there are.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::INVALID_HANDLE_VALUE;
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};

use super::convert::narrow;

/// Number and file name of the program of every process; those that can not be opened have theirs, too.
pub fn names() -> io::Result<Vec<(u32, String)>> {
    // SAFETY: it has no conditions; the number of a process does not matter to this kind of snapshot.
    let handle = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if handle == INVALID_HANDLE_VALUE {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so that it is a handle, and nobody else has it.
    let snapshot = unsafe { OwnedHandle::from_raw_handle(handle) };
    #[expect(clippy::cast_possible_truncation, reason = "568 bytes")]
    let mut entry = PROCESSENTRY32W { dwSize: size_of::<PROCESSENTRY32W>() as u32, ..Default::default() };
    let mut names = Vec::new();
    // SAFETY: the snapshot is one of processes, and `entry` tells its size and outlives the call.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut entry) };
    while more != 0 {
        names.push((entry.th32ProcessID, narrow(&entry.szExeFile).to_string_lossy().into_owned()));
        // SAFETY: as before.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut entry) };
    }
    Ok(names)
}
