//! Ctrl-C and Ctrl-Break.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::core::BOOL;

use super::convert::succeeded;

/// Whether Ctrl-C or Ctrl-Break was pressed.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Reports Ctrl-C and Ctrl-Break as handled, so Windows does not end this process.
unsafe extern "system" fn control_handler(event: u32) -> BOOL {
    let ours = matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT);
    if ours {
        INTERRUPTED.store(true, Ordering::Relaxed);
    }
    BOOL::from(ours)
}

/// Prevents Ctrl-C from ending this process. Unlike the flag of `SetConsoleCtrlHandler(NULL, TRUE)`, a handler is not
/// inherited, so Ctrl-C still ends the command.
pub fn note_interrupts() -> io::Result<()> {
    // SAFETY: `control_handler` has the signature of a handler, touches one atomic and lives as long as the process.
    succeeded(unsafe { SetConsoleCtrlHandler(Some(control_handler), 1) })
}

/// Returns whether Ctrl-C or Ctrl-Break was pressed since [`note_interrupts`].
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
