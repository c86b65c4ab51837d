//! Reads values of keys below HKEY_LOCAL_MACHINE.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ffi::OsString;
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_FILE_NOT_FOUND, ERROR_SUCCESS};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, REG_ROUTINE_FLAGS, RRF_NOEXPAND, RRF_RT_ANY, RRF_RT_REG_DWORD, RRF_RT_REG_EXPAND_SZ,
    RRF_RT_REG_SZ, RegGetValueW,
};

use super::wide;

/// Returns a text; `None` if there is none. Its variables are not expanded.
#[must_use]
pub fn text(key: &str, value: &str) -> Option<OsString> {
    let bytes = read(key, value, RRF_RT_REG_SZ | RRF_RT_REG_EXPAND_SZ | RRF_NOEXPAND).ok()??;
    let units: Vec<u16> = bytes.as_chunks::<2>().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    Some(OsString::from_wide(units.split(|unit| *unit == 0).next().unwrap_or_default()))
}

/// Returns a number of 32 bits; `None` if there is none.
#[must_use]
pub fn number(key: &str, value: &str) -> Option<u32> {
    let bytes = read(key, value, RRF_RT_REG_DWORD).ok()??;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// Returns the bytes of a value of any type; `None` if there is no such value.
///
/// # Errors
/// If Windows cannot read it.
pub fn bytes(key: &str, value: &str) -> io::Result<Option<Vec<u8>>> {
    read(key, value, RRF_RT_ANY)
}

fn read(key: &str, value: &str, kinds: REG_ROUTINE_FLAGS) -> io::Result<Option<Vec<u8>>> {
    let (key, value) = (wide(key), wide(value));
    let get = |bytes: *mut u8, length: &mut u32| {
        // SAFETY: both names are zero-terminated, the buffer is null or has the given size and takes any bytes, no type
        // is requested, and all of them outlive the call.
        unsafe {
            RegGetValueW(HKEY_LOCAL_MACHINE, key.as_ptr(), value.as_ptr(), kinds, null_mut(), bytes.cast(), length)
        }
    };
    let done = |error: u32| match error {
        ERROR_SUCCESS => Ok(()),
        error => Err(io::Error::from_raw_os_error(error.cast_signed())),
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
