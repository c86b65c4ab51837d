//! Values of the registry.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_FILE_NOT_FOUND, ERROR_SUCCESS};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, REG_BINARY, REG_ROUTINE_FLAGS, RRF_RT_ANY, RegDeleteKeyValueW, RegGetValueW, RegSetKeyValueW,
};
use zerocopy::{FromBytes, IntoBytes};

use super::convert::wide;

/// Reads a value of a key below HKEY_LOCAL_MACHINE into `buffer`. `kind` is the type that it must have (RRF_RT_...).
/// `None` if there is no such value, or no room for it.
pub fn read<T: FromBytes + IntoBytes>(key: &str, value: &str, kind: REG_ROUTINE_FLAGS, buffer: &mut [T]) -> Option<()> {
    let (key, value) = (wide(key), wide(value));
    let mut length = u32::try_from(size_of_val(buffer)).ok()?;
    // SAFETY: both names are zero-terminated, the buffer has the given size and takes any bytes, no type is
    // requested, and all of them outlive the call.
    let error = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            value.as_ptr(),
            kind,
            null_mut(),
            buffer.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (error == 0).then_some(())
}

/// Converts the result of a function of the registry.
fn done(error: u32) -> io::Result<()> {
    if error == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(error.cast_signed())) }
}

/// Reads a value of any type of a key below HKEY_LOCAL_MACHINE; `None` if there is no such value.
pub fn read_bytes(key: &str, value: &str) -> io::Result<Option<Vec<u8>>> {
    let (key, value) = (wide(key), wide(value));
    let get = |bytes: *mut u8, length: &mut u32| {
        // SAFETY: both names are zero-terminated, the buffer is null or has the given size and takes any bytes, no type
        // is requested, and all of them outlive the call.
        unsafe {
            RegGetValueW(HKEY_LOCAL_MACHINE, key.as_ptr(), value.as_ptr(), RRF_RT_ANY, null_mut(), bytes.cast(), length)
        }
    };
    let mut length = 0;
    match get(null_mut(), &mut length) {
        ERROR_FILE_NOT_FOUND => return Ok(None),
        error => done(error)?,
    }
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    done(get(bytes.as_mut_ptr(), &mut length))?;
    bytes.truncate(usize::try_from(length).map_err(io::Error::other)?);
    Ok(Some(bytes))
}

/// Writes a value of type REG_BINARY of a key below HKEY_LOCAL_MACHINE. Creates the key if necessary.
pub fn write_bytes(key: &str, value: &str, bytes: &[u8]) -> io::Result<()> {
    let (key, value) = (wide(key), wide(value));
    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
    // SAFETY: both names are zero-terminated, the data has the given size, and all of them outlive the call.
    done(unsafe {
        RegSetKeyValueW(HKEY_LOCAL_MACHINE, key.as_ptr(), value.as_ptr(), REG_BINARY, bytes.as_ptr().cast(), length)
    })
}

/// Removes a value of a key below HKEY_LOCAL_MACHINE.
pub fn remove(key: &str, value: &str) -> io::Result<()> {
    let (key, value) = (wide(key), wide(value));
    // SAFETY: both names are zero-terminated and outlive the call.
    done(unsafe { RegDeleteKeyValueW(HKEY_LOCAL_MACHINE, key.as_ptr(), value.as_ptr()) })
}
