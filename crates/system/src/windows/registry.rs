//! Writes values of the registry; `halprof::windows::registry` reads them.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;

use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, REG_BINARY, RegDeleteKeyValueW, RegSetKeyValueW};

use super::convert::{checked, wide};

/// Writes a value of type REG_BINARY of a key below HKEY_LOCAL_MACHINE. Creates the key if necessary.
pub fn write_bytes(key: &str, value: &str, bytes: &[u8]) -> io::Result<()> {
    let (key, value) = (wide(key), wide(value));
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    // SAFETY: both names are zero-terminated, the data has the given size, and all of them outlive the call.
    checked(unsafe {
        RegSetKeyValueW(HKEY_LOCAL_MACHINE, key.as_ptr(), value.as_ptr(), REG_BINARY, bytes.as_ptr().cast(), length)
    })
}

/// Removes a value of a key below HKEY_LOCAL_MACHINE.
pub fn remove(key: &str, value: &str) -> io::Result<()> {
    let (key, value) = (wide(key), wide(value));
    // SAFETY: both names are zero-terminated and outlive the call.
    checked(unsafe { RegDeleteKeyValueW(HKEY_LOCAL_MACHINE, key.as_ptr(), value.as_ptr()) })
}
