//! The three Win32 functions.

#![expect(unsafe_code, reason = "foreign functions")]

use std::ptr;
use windows_sys::Win32::{
    Foundation::{CloseHandle, GENERIC_READ, GENERIC_WRITE, GetLastError, HANDLE, INVALID_HANDLE_VALUE},
    Storage::FileSystem::{CreateFileW, FILE_SHARE_READ, FILE_SHARE_WRITE, OPEN_EXISTING},
    System::IO::DeviceIoControl,
};

/// A code of GetLastError.
pub struct Win32Error(pub u32);

/// What to give for a buffer.
pub enum Buffer {
    /// These bytes, or that many for the output.
    Bytes(Vec<u8>),
    /// A null pointer, and this for its length.
    Null(u32),
}

impl Buffer {
    fn parts(&mut self) -> (*mut u8, u32) {
        match self {
            Self::Bytes(bytes) => (bytes.as_mut_ptr(), u32::try_from(bytes.len()).unwrap_or(u32::MAX)),
            Self::Null(length) => (ptr::null_mut(), *length),
        }
    }
}

/// An open device; it is closed when dropped.
pub struct Device(HANDLE);

impl Device {
    pub fn open(name: &str, writable: bool) -> Result<Self, Win32Error> {
        let name: Vec<u16> = name.encode_utf16().chain([0]).collect();
        let access = if writable { GENERIC_READ | GENERIC_WRITE } else { GENERIC_READ };
        let share = FILE_SHARE_READ | FILE_SHARE_WRITE;
        let (security, template) = (ptr::null(), ptr::null_mut());
        // SAFETY: the name ends with NUL; the rest may be null.
        let handle = unsafe { CreateFileW(name.as_ptr(), access, share, security, OPEN_EXISTING, 0, template) };
        if handle == INVALID_HANDLE_VALUE { Err(last_error()) } else { Ok(Self(handle)) }
    }

    /// Sends a request and gives what came back.
    pub fn control(&self, code: u32, mut input: Buffer, mut output: Buffer) -> Result<Vec<u8>, Win32Error> {
        let ((input, input_length), (out, output_length)) = (input.parts(), output.parts());
        let (mut returned, overlapped) = (0, ptr::null_mut());
        // SAFETY: a buffer has the length told with it, or is null, which the system refuses or passes on as a length.
        let done = unsafe {
            DeviceIoControl(
                self.0,
                code,
                input.cast(),
                input_length,
                out.cast(),
                output_length,
                &raw mut returned,
                overlapped,
            )
        };
        if done == 0 {
            return Err(last_error());
        }
        let Buffer::Bytes(mut bytes) = output else { return Ok(Vec::new()) };
        bytes.truncate(usize::try_from(returned).unwrap_or(usize::MAX));
        Ok(bytes)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: open, and closed once.
        unsafe { CloseHandle(self.0) };
    }
}

fn last_error() -> Win32Error {
    // SAFETY: takes nothing.
    Win32Error(unsafe { GetLastError() })
}
