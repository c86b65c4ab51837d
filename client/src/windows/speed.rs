//! The speed of the processors.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ptr::null_mut;

use windows_sys::Win32::System::Registry::{HKEY_LOCAL_MACHINE, RRF_RT_REG_DWORD, RegGetValueW};

use super::convert::wide;

/// Returns the frequency of the time-stamp counter in hertz, which Windows measured at boot and stores in MHz; `None`
/// if it is unknown.
pub fn tsc_frequency() -> Option<f64> {
    let (key, value) = (wide("HARDWARE\\DESCRIPTION\\System\\CentralProcessor\\0"), wide("~MHz"));
    let mut megahertz = 0_u32;
    let mut length = u32::try_from(size_of_val(&megahertz)).ok()?;
    // SAFETY: both names are zero-terminated, the buffer has the given size, no type is requested, and all of them
    // outlive the call.
    let error = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            value.as_ptr(),
            RRF_RT_REG_DWORD,
            null_mut(),
            (&raw mut megahertz).cast(),
            &raw mut length,
        )
    };
    (error == 0 && megahertz > 0).then(|| f64::from(megahertz) * 1e6)
}
