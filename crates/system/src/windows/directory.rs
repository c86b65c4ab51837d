//! The directory of Windows.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::path::PathBuf;

use windows_sys::Win32::Foundation::MAX_PATH;
use windows_sys::Win32::System::SystemInformation::GetSystemWindowsDirectoryW;

/// Returns the directory of Windows, on a terminal server the shared one.
pub fn windows() -> io::Result<PathBuf> {
    let mut buffer = [0; MAX_PATH as usize];
    // SAFETY: the buffer has MAX_PATH elements, the given length.
    let length = unsafe { GetSystemWindowsDirectoryW(buffer.as_mut_ptr(), MAX_PATH) };
    match buffer.get(..length as usize) {
        Some(path) if length > 0 => Ok(OsString::from_wide(path).into()),
        _ => Err(io::Error::last_os_error()),
    }
}
