//! The calls to Windows, which are the only unsafe code of the library.

mod device;
mod folders;
mod memory;
mod privilege;
pub mod registry;
mod service;
mod threads;
mod version;
mod volume;

use std::ffi::OsStr;
use std::io;
use std::os::windows::ffi::OsStrExt as _;

use windows_sys::core::BOOL;

pub use self::device::DeviceHandle;
pub use self::folders::{program_data, program_files};
pub use self::privilege::{DEBUG, EnabledPrivilege, SYSTEM_PROFILE, enable_privilege};
pub use self::service::service_state;
pub use self::threads::WindowsSystem;
pub use self::volume::WindowsVolume;

/// Converts a text to UTF-16 with a terminating zero.
fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}

/// Converts a BOOL to a result with the last error of the thread.
fn succeeded(answer: BOOL) -> io::Result<()> {
    if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
