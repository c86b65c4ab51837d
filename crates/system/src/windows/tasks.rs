//! Processes and threads until their end.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};

use windows_sys::Win32::Foundation::WAIT_OBJECT_0;
use windows_sys::Win32::System::Threading::{
    OpenProcess, OpenThread, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE, THREAD_QUERY_LIMITED_INFORMATION,
    THREAD_SYNCHRONIZE, WaitForSingleObject,
};

use crate::{OpenTask, Task};

/// A process or thread. Its ID belongs to no other one while the handle is open.
struct TaskHandle(OwnedHandle);

/// Opens a process or a thread with the access that protected processes grant too.
pub fn open(task: Task) -> io::Result<impl OpenTask> {
    let handle = match task {
        // SAFETY: the function has no preconditions.
        Task::Process(id) => unsafe { OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE, 0, id) },
        // SAFETY: as above.
        Task::Thread(id) => unsafe { OpenThread(THREAD_QUERY_LIMITED_INFORMATION | THREAD_SYNCHRONIZE, 0, id) },
    };
    if handle.is_null() {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, so this is a valid handle, and nothing else owns it.
    Ok(TaskHandle(unsafe { OwnedHandle::from_raw_handle(handle) }))
}

impl OpenTask for TaskHandle {
    fn has_ended(&self) -> bool {
        // SAFETY: the handle is open and has the required access.
        unsafe { WaitForSingleObject(self.0.as_raw_handle(), 0) == WAIT_OBJECT_0 }
    }
}
