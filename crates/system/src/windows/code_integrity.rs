//! What the kernel checks when it loads a driver.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::ptr::null_mut;

use halprof::windows::registry;
use windows_sys::Wdk::System::SystemInformation::{NtQuerySystemInformation, SystemCodeIntegrityInformation};
use windows_sys::Win32::Foundation::RtlNtStatusToDosError;
use windows_sys::Win32::System::WindowsProgramming::{
    CODEINTEGRITY_OPTION_DEBUGMODE_ENABLED, CODEINTEGRITY_OPTION_ENABLED, CODEINTEGRITY_OPTION_PREPRODUCTION_BUILD,
    CODEINTEGRITY_OPTION_TEST_BUILD, CODEINTEGRITY_OPTION_TESTSIGN, SYSTEM_CODEINTEGRITY_INFORMATION,
};

use crate::CodeIntegrity;

/// Options under which the kernel accepts test signatures.
const TEST: u32 =
    CODEINTEGRITY_OPTION_TESTSIGN | CODEINTEGRITY_OPTION_TEST_BUILD | CODEINTEGRITY_OPTION_PREPRODUCTION_BUILD;

/// Returns what the kernel checks when it loads a driver. A debugger that was attached at boot turns the check off.
pub fn query() -> io::Result<CodeIntegrity> {
    let options = options()?;
    Ok(CodeIntegrity {
        is_enforced: options & CODEINTEGRITY_OPTION_ENABLED != 0
            && options & CODEINTEGRITY_OPTION_DEBUGMODE_ENABLED == 0,
        // One of the two is enough: a refusal needs certainty.
        accepts_test_signatures: options & TEST != 0 || boot_options().is_some_and(|text| text.contains("TESTSIGNING")),
    })
}

/// Returns the options of code integrity.
fn options() -> io::Result<u32> {
    let length = u32::try_from(size_of::<SYSTEM_CODEINTEGRITY_INFORMATION>()).map_err(io::Error::other)?;
    let mut information = SYSTEM_CODEINTEGRITY_INFORMATION { Length: length, CodeIntegrityOptions: 0 };
    // SAFETY: the structure is that of this class, has the given size, and outlives the call.
    let status = unsafe {
        NtQuerySystemInformation(
            SystemCodeIntegrityInformation,
            (&raw mut information).cast(),
            length,
            null_mut(), // the size is fixed
        )
    };
    if status < 0 {
        // SAFETY: the function has no preconditions.
        let code = unsafe { RtlNtStatusToDosError(status) };
        return Err(io::Error::from_raw_os_error(code.cast_signed()));
    }
    Ok(information.CodeIntegrityOptions)
}

/// Returns the options that the boot loader passed to the kernel, in capital letters; `None` if they are unknown.
fn boot_options() -> Option<String> {
    let text = registry::text("SYSTEM\\CurrentControlSet\\Control", "SystemStartOptions")?;
    Some(text.to_string_lossy().to_uppercase())
}
