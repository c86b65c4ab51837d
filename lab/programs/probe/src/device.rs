//! The Win32 functions for devices.

#![expect(unsafe_code, reason = "foreign functions")]

use std::ptr;
use windows_sys::Win32::{
    Foundation::{
        CloseHandle, ERROR_IO_PENDING, GENERIC_READ, GENERIC_WRITE, GetLastError, HANDLE, INVALID_HANDLE_VALUE,
        WAIT_OBJECT_0,
    },
    Storage::FileSystem::{CreateFileW, FILE_FLAG_OVERLAPPED, FILE_SHARE_READ, FILE_SHARE_WRITE, OPEN_EXISTING},
    System::{
        IO::{CancelIoEx, DeviceIoControl, GetOverlappedResult, OVERLAPPED},
        Threading::{CreateEventW, WaitForSingleObject},
    },
};

/// An error code of GetLastError.
pub struct Win32Error(pub u32);

/// The argument for a buffer.
pub enum Buffer {
    /// A buffer with these bytes. For the output, only their number matters.
    Bytes(Vec<u8>),
    /// A null pointer.
    Null,
}

impl Buffer {
    /// Returns pointer and length. A null pointer has length 0 regardless of the command, as the Windows I/O manager
    /// passes it to a driver. Wine's ntdll does not send a request with a null pointer and a length. It interprets the
    /// output length as a handle and waits on it. Depending on the object with that handle, it hangs, fails with
    /// ERROR_INVALID_HANDLE or reports success.
    fn parts(&mut self) -> (*mut u8, u32) {
        match self {
            Self::Bytes(bytes) => (bytes.as_mut_ptr(), u32::try_from(bytes.len()).unwrap_or(u32::MAX)),
            Self::Null => (ptr::null_mut(), 0),
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Null => Vec::new(),
        }
    }
}

/// How to open a device.
#[derive(Clone, Copy)]
pub struct OpenOptions {
    pub writable: bool,
    /// Whether requests may complete out of order. [`Handle::control`] waits for its request in both cases.
    pub overlapped: bool,
}

/// The number of a device handle. The system rejects it if the device has been closed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    number: HANDLE,
    /// Whether requests may be pending.
    pub overlapped: bool,
}

// SAFETY: a handle belongs to the process, so every thread may use it.
unsafe impl Send for Handle {}

/// An open device, which is closed on drop.
pub struct Device(Handle);

impl Device {
    pub fn open(name: &str, options: OpenOptions) -> Result<Self, Win32Error> {
        let name: Vec<u16> = name.encode_utf16().chain([0]).collect();
        let access = if options.writable { GENERIC_READ | GENERIC_WRITE } else { GENERIC_READ };
        let share = FILE_SHARE_READ | FILE_SHARE_WRITE;
        let flags = if options.overlapped { FILE_FLAG_OVERLAPPED } else { 0 };
        let (security, template) = (ptr::null(), ptr::null_mut());
        // SAFETY: the name ends with NUL, and the other pointers may be null.
        let number = unsafe { CreateFileW(name.as_ptr(), access, share, security, OPEN_EXISTING, flags, template) };
        if number == INVALID_HANDLE_VALUE {
            return Err(last_error());
        }
        Ok(Self(Handle { number, overlapped: options.overlapped }))
    }

    pub fn handle(&self) -> Handle {
        self.0
    }

    /// Requests cancellation of all pending requests.
    pub fn cancel(&self) -> Result<(), Win32Error> {
        // SAFETY: the handle is open; null means every request.
        done(unsafe { CancelIoEx(self.0.number, ptr::null()) })
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the handle is open and is closed once.
        unsafe { CloseHandle(self.0.number) };
    }
}

/// A request that is complete.
pub struct Completed {
    /// The number of bytes that were returned.
    pub returned: Result<usize, Win32Error>,
    /// The whole output.
    pub output: Vec<u8>,
}

/// The outcome of sending a request.
pub enum Sent {
    /// It is complete.
    Completed(Completed),
    /// It is pending.
    Pending(Box<Pending>),
}

/// A request through an overlapped handle. The system reads and writes the fields until it is complete.
pub struct Pending {
    /// The handle that the request was sent through. It may have been closed meanwhile.
    pub handle: Handle,
    event: Event,
    overlapped: OVERLAPPED,
    input: Buffer,
    output: Buffer,
}

// SAFETY: an event belongs to the process, so every thread may wait for it.
unsafe impl Send for Pending {}

impl Handle {
    /// Sends a request, waits for its completion and returns its output.
    pub fn control(self, code: u32, input: Buffer, output: Buffer) -> Result<Vec<u8>, Win32Error> {
        let Completed { returned, mut output } = match self.send(code, input, output)? {
            Sent::Completed(completed) => completed,
            Sent::Pending(pending) => pending.wait(),
        };
        output.truncate(returned?);
        Ok(output)
    }

    /// Sends a request, and waits for its completion unless the handle is overlapped.
    pub fn send(self, code: u32, mut input: Buffer, mut output: Buffer) -> Result<Sent, Win32Error> {
        if !self.overlapped {
            let returned = self.device_control(code, &mut input, &mut output, ptr::null_mut());
            return Ok(Sent::Completed(Completed { returned, output: output.into_bytes() }));
        }
        let event = Event::new()?;
        let overlapped = OVERLAPPED { hEvent: event.0, ..OVERLAPPED::default() };
        let mut pending = Box::new(Pending { handle: self, event, overlapped, input, output });
        let Pending { overlapped, input, output, .. } = &mut *pending;
        match self.device_control(code, input, output, overlapped) {
            Err(Win32Error(ERROR_IO_PENDING)) => Ok(Sent::Pending(pending)),
            returned => Ok(Sent::Completed(Completed { returned, output: pending.output.into_bytes() })),
        }
    }

    /// Calls the function of Windows. If it fails with `ERROR_IO_PENDING`, the buffers and `overlapped` must stay until
    /// the request is complete.
    fn device_control(
        self,
        code: u32,
        input: &mut Buffer,
        output: &mut Buffer,
        overlapped: *mut OVERLAPPED,
    ) -> Result<usize, Win32Error> {
        let ((input, input_length), (output, output_length)) = (input.parts(), output.parts());
        let mut returned = 0;
        // SAFETY: each buffer has the passed length, or is null with length 0. All buffers outlive the request.
        done(unsafe {
            DeviceIoControl(
                self.number,
                code,
                input.cast(),
                input_length,
                output.cast(),
                output_length,
                &raw mut returned,
                overlapped,
            )
        })?;
        Ok(usize::try_from(returned).unwrap_or(usize::MAX))
    }
}

impl Pending {
    /// Returns whether the request is complete.
    pub fn is_complete(&self) -> bool {
        // SAFETY: the event is open.
        unsafe { WaitForSingleObject(self.event.0, 0) == WAIT_OBJECT_0 }
    }

    /// Requests cancellation. Fails if the request is complete, or the handle is closed.
    pub fn cancel(&self) -> Result<(), Win32Error> {
        // SAFETY: the system compares the address, and rejects the handle if it is closed.
        done(unsafe { CancelIoEx(self.handle.number, &raw const self.overlapped) })
    }

    /// Waits for the completion. The system waits for the event, even if the handle has been closed.
    #[expect(clippy::boxed_local, reason = "the system writes to the structure until then, so it must not move")]
    pub fn wait(mut self: Box<Self>) -> Completed {
        let mut returned = 0;
        // SAFETY: the request was sent with this structure, which has an event.
        let ended =
            done(unsafe { GetOverlappedResult(self.handle.number, &raw mut self.overlapped, &raw mut returned, 1) });
        let Self { input, output, .. } = *self;
        drop(input);
        let returned = ended.map(|()| usize::try_from(returned).unwrap_or(usize::MAX));
        Completed { returned, output: output.into_bytes() }
    }
}

/// An event that signals the completion of a request.
struct Event(HANDLE);

impl Event {
    fn new() -> Result<Self, Win32Error> {
        let (manual, set) = (1, 0);
        // SAFETY: security and name may be null.
        let event = unsafe { CreateEventW(ptr::null(), manual, set, ptr::null()) };
        if event.is_null() { Err(last_error()) } else { Ok(Self(event)) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: `new` created the event, and it is closed once.
        unsafe { CloseHandle(self.0) };
    }
}

pub fn done(result: i32) -> Result<(), Win32Error> {
    if result == 0 { Err(last_error()) } else { Ok(()) }
}

pub fn last_error() -> Win32Error {
    // SAFETY: the function has no preconditions.
    Win32Error(unsafe { GetLastError() })
}
