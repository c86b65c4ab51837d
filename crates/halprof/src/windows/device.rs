//! The driver's device.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::OpenOptionsExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::Arc;

use protocol::{Code, WIN32_NAME};
use windows_sys::Win32::Foundation::ERROR_IO_PENDING;
use windows_sys::Win32::Storage::FileSystem::FILE_FLAG_OVERLAPPED;
use windows_sys::Win32::System::IO::{DeviceIoControl, GetOverlappedResult, OVERLAPPED};
use windows_sys::Win32::System::Threading::CreateEventW;

use super::succeeded;
use crate::Device;

/// An open handle to the device. It is closed when the last owner is dropped, and not inherited by a command.
#[derive(Clone)]
pub struct DeviceHandle(Arc<File>);

impl DeviceHandle {
    /// Opens the device for reading and writing. Windows does not make its requests wait for each other.
    ///
    /// # Errors
    /// The Win32 error, for [`OpenError::new`](crate::OpenError::new).
    pub fn open() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).custom_flags(FILE_FLAG_OVERLAPPED).open(WIN32_NAME)?;
        Ok(Self(Arc::new(file)))
    }
}

impl Device for DeviceHandle {
    fn request(&self, code: Code, input: &[u8], output: &mut [u8]) -> io::Result<usize> {
        // Before the request is sent, because nothing may fail until it is complete.
        let (input_length, output_length) = (length(input)?, length(output)?);
        let event = event()?;
        let mut overlapped = OVERLAPPED { hEvent: event.as_raw_handle(), ..OVERLAPPED::default() };
        // SAFETY: the handle is open for overlapped operation, and both buffers have the given lengths. They, the event
        // and `overlapped` outlive the request, because `GetOverlappedResult` waits for its end.
        let answer = unsafe {
            DeviceIoControl(
                self.0.as_raw_handle(),
                code as u32,
                input.as_ptr().cast(),
                input_length,
                output.as_mut_ptr().cast(),
                output_length,
                null_mut(),
                &raw mut overlapped,
            )
        };
        if answer == 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() != Some(ERROR_IO_PENDING.cast_signed()) {
                return Err(error);
            }
        }
        let mut written = 0;
        // SAFETY: the handle is open, `overlapped` is that of the request just sent, and `written` outlives the call.
        succeeded(unsafe { GetOverlappedResult(self.0.as_raw_handle(), &raw const overlapped, &raw mut written, 1) })?;
        Ok(written as usize)
    }

    fn share(&self) -> Box<dyn Device + Send> {
        Box::new(self.clone())
    }
}

/// Creates the event of a request.
fn event() -> io::Result<OwnedHandle> {
    // SAFETY: the attributes and the name may be null.
    let handle = unsafe { CreateEventW(null(), 1, 0, null()) };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is a valid handle, and nothing else owns it.
    Ok(unsafe { OwnedHandle::from_raw_handle(handle) })
}

fn length(buffer: &[u8]) -> io::Result<u32> {
    u32::try_from(buffer.len()).map_err(|_| io::ErrorKind::InvalidInput.into())
}
