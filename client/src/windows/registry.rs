//! Values of the registry.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ptr::null_mut;

use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, REG_ROUTINE_FLAGS, RegGetValueW};
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
