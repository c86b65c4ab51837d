//! Conversions of the texts and results of Windows.

use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStringExt;

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, WIN32_ERROR};

/// Converts a text to UTF-16 with a terminating zero.
pub fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

/// Converts UTF-16 up to the first zero, or to the end of the buffer.
pub fn narrow(text: &[u16]) -> OsString {
    let end = text.iter().position(|unit| *unit == 0).unwrap_or(text.len());
    OsString::from_wide(text.get(..end).unwrap_or_default())
}

/// Converts a BOOL to a result with the last error of the thread.
pub fn succeeded(answer: windows_sys::core::BOOL) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Converts a Win32 error code to a result.
pub fn checked(code: WIN32_ERROR) -> io::Result<()> {
    if code == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(code.cast_signed())) }
}
