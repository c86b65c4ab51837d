//! Ctrl-C and Ctrl-Break.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

use super::succeeded;

/// Says that Ctrl-C and Ctrl-Break were dealt with, so that Windows does not end this process.
unsafe extern "system" fn ignore(event: u32) -> BOOL {
    BOOL::from(matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT))
}

/// From now on Ctrl-C does not end this process. A handler is not inherited, unlike the flag that
/// `SetConsoleCtrlHandler(NULL, TRUE)` sets: it still ends the command.
pub fn ignore_interrupts() -> io::Result<()> {
    // SAFETY: `ignore` has the signature of a handler, touches nothing and lives as long as the process.
    succeeded(unsafe { SetConsoleCtrlHandler(Some(ignore), 1) })
}
