//! The processor under an emulator.

#![expect(unsafe_code, reason = "calls to Windows")]

use windows_sys::Win32::System::SystemInformation::{IMAGE_FILE_MACHINE, IMAGE_FILE_MACHINE_ARM64};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, IsWow64Process2};

/// Returns whether the machine is an ARM64 one, whose Windows emulates x86-64 for this program. A failure counts as
/// "no".
///
/// The machine of the process is not asked: for an x86-64 program on ARM64 it is documented to be unknown.
pub fn is_arm64() -> bool {
    let (mut process, mut native): (IMAGE_FILE_MACHINE, IMAGE_FILE_MACHINE) = (0, 0);
    // SAFETY: the function has no preconditions.
    let this = unsafe { GetCurrentProcess() };
    // SAFETY: the handle is valid, and both pointers are to variables of the documented type.
    let known = unsafe { IsWow64Process2(this, &raw mut process, &raw mut native) } != 0;
    known && native == IMAGE_FILE_MACHINE_ARM64
}
