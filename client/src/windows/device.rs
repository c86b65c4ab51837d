//! The driver's device.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::io::AsRawHandle;
use std::ptr::null_mut;

use protocol::{Code, WIN32_NAME};
use windows_sys::Win32::System::IO::DeviceIoControl;

use super::convert::succeeded;
use crate::system::Device;

/// An open handle to the device. It is closed when dropped, and not inherited by a command.
pub struct DeviceHandle(File);

impl DeviceHandle {
    /// Opens the device for reading and writing.
    pub fn open() -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).open(WIN32_NAME).map(Self)
    }
}

impl Device for DeviceHandle {
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        let mut written = 0;
        // SAFETY: the handle is open, and both buffers have the given lengths. The handle was not opened for overlapped
        // operation, so the call is synchronous, and the buffers and `written` outlive it.
        let answer = unsafe {
            DeviceIoControl(
                self.0.as_raw_handle(),
                code as u32,
                input.as_ptr().cast(),
                length(input)?,
                output.as_mut_ptr().cast(),
                length(output)?,
                &raw mut written,
                null_mut(),
            )
        };
        succeeded(answer)?;
        Ok(written as usize)
    }
}

fn length(buffer: &[u8]) -> io::Result<u32> {
    u32::try_from(buffer.len()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
