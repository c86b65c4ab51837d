//! Paths in the namespace of the kernel.

#![expect(unsafe_code, reason = "calls to Windows")]

use windows_sys::Win32::Storage::FileSystem::QueryDosDeviceW;

use super::convert::{narrow, wide};

/// Returns the drives, such as `C:`, with the devices for which they stand, such as `\Device\HarddiskVolume3`.
pub fn drives() -> Vec<(String, String)> {
    ('A'..='Z').filter_map(|letter| device_of(format!("{letter}:"))).collect()
}

fn device_of(drive: String) -> Option<(String, String)> {
    let name = wide(&drive);
    let mut targets = [0_u16; 1_024];
    let room = u32::try_from(targets.len()).ok()?;
    // SAFETY: the name is zero-terminated, the buffer has the given size in characters, and both outlive the call.
    let length = unsafe { QueryDosDeviceW(name.as_ptr(), targets.as_mut_ptr(), room) };
    // The present target is the first of several.
    let device = narrow(&targets).into_string().ok()?;
    (length != 0 && !device.is_empty()).then_some((drive, device))
}
