//! Ctrl-C and Ctrl-Break.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

use super::convert::succeeded;

/// Whether either was pressed.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Says that Ctrl-C and Ctrl-Break were dealt with, so that Windows does not end this process, however often they come.
unsafe extern "system" fn note(event: u32) -> BOOL {
    let ours = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT);
    if ours {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    BOOL::from(ours)
}

/// From now on Ctrl-C does not end this process. A handler is not inherited, unlike the flag that
/// `SetConsoleCtrlHandler(NULL, TRUE)` sets: it still ends the command.
pub fn note_interrupts() -> io::Result<()> {
    // SAFETY: `note` has the signature of a handler, touches one atomic and lives as long as the process.
    succeeded(unsafe { SetConsoleCtrlHandler(Some(note), 1) })
}

/// Whether Ctrl-C or Ctrl-Break was pressed since they are noted.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
