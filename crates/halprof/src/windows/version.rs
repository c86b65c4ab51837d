//! The build of this Windows.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ptr::null_mut;

use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_DWORD, RRF_RT_REG_SZ, RegGetValueW};
use windows_sys::core::{PCWSTR, w};

/// Length of the longest build in UTF-16 units, with the terminating zero.
const LONGEST: usize = 32;

/// Returns the build with its update. The functions for it return the one that the manifest of a program asks for, and
/// none returns the update.
pub(super) fn build() -> Option<String> {
    let mut units = [0_u16; LONGEST];
    let size = u32::try_from(size_of_val(&units)).ok()?;
    read(w!("CurrentBuildNumber"), RRF_RT_REG_SZ, units.as_mut_ptr().cast(), size)?;
    let build = String::from_utf16_lossy(units.split(|unit| *unit == 0).next()?);
    let mut update = 0_u32;
    let size = u32::try_from(size_of_val(&update)).ok()?;
    match read(w!("UBR"), RRF_RT_REG_DWORD, (&raw mut update).cast(), size) {
        Some(()) => Some(format!("{build}.{update}")),
        None => Some(build),
    }
}

/// Reads a value of this type into a buffer of this size; `None` if there is none, or no room for it.
fn read(value: PCWSTR, kind: u32, buffer: *mut u8, mut size: u32) -> Option<()> {
    const KEY: PCWSTR = w!("SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion");
    // SAFETY: both names are constants with a terminating zero, no type is requested, and the callers pass a buffer of
    // this size that takes any bytes.
    let error = unsafe { RegGetValueW(HKEY_LOCAL_MACHINE, KEY, value, kind, null_mut(), buffer.cast(), &raw mut size) };
    (error == 0).then_some(())
}
