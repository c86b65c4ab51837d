//! Starts and stops the service of a driver.

#![expect(unsafe_code, reason = "foreign functions")]

use crate::device::{Win32Error, done, last_error};
use std::{
    ptr, thread,
    time::{Duration, Instant},
};
use windows_sys::Win32::Foundation::ERROR_SERVICE_REQUEST_TIMEOUT;
use windows_sys::Win32::Storage::FileSystem::DELETE;
use windows_sys::Win32::System::Services::{
    CloseServiceHandle, ControlService, CreateServiceW, DeleteService, OpenSCManagerW, OpenServiceW,
    QueryServiceStatus, SC_HANDLE, SC_MANAGER_CONNECT, SC_MANAGER_CREATE_SERVICE, SERVICE_CONTROL_STOP,
    SERVICE_DEMAND_START, SERVICE_ERROR_NORMAL, SERVICE_KERNEL_DRIVER, SERVICE_QUERY_STATUS, SERVICE_START,
    SERVICE_STATUS, SERVICE_STOP, SERVICE_STOPPED, StartServiceW,
};

/// An open handle of the service control manager.
struct Handle(SC_HANDLE);

impl Handle {
    fn new(handle: SC_HANDLE) -> Result<Self, Win32Error> {
        if handle.is_null() { Err(last_error()) } else { Ok(Self(handle)) }
    }

    fn manager(access: u32) -> Result<Self, Win32Error> {
        // SAFETY: null selects the local machine and the default database.
        Self::new(unsafe { OpenSCManagerW(ptr::null(), ptr::null(), access) })
    }

    fn of(name: &str) -> Result<Self, Win32Error> {
        let manager = Self::manager(SC_MANAGER_CONNECT)?;
        let access = SERVICE_START | SERVICE_STOP | SERVICE_QUERY_STATUS | DELETE;
        // SAFETY: the manager is open, and the name ends with NUL.
        Self::new(unsafe { OpenServiceW(manager.0, wide(name).as_ptr(), access) })
    }
}

fn wide(text: &str) -> Vec<u16> {
    text.encode_utf16().chain([0]).collect()
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the handle is open and is closed once.
        unsafe { CloseServiceHandle(self.0) };
    }
}

/// Creates a service for the driver at this path, in this load-order group.
pub fn create(name: &str, image: &str, group: &str) -> Result<(), Win32Error> {
    let manager = Handle::manager(SC_MANAGER_CREATE_SERVICE)?;
    let (name, image, group) = (wide(name), wide(image), wide(group));
    // SAFETY: the manager is open, the strings end with NUL, and the other pointers may be null.
    let service = unsafe {
        CreateServiceW(
            manager.0,
            name.as_ptr(),
            ptr::null(),
            SERVICE_QUERY_STATUS,
            SERVICE_KERNEL_DRIVER,
            SERVICE_DEMAND_START,
            SERVICE_ERROR_NORMAL,
            image.as_ptr(),
            group.as_ptr(),
            ptr::null_mut(),
            ptr::null(),
            ptr::null(),
            ptr::null(),
        )
    };
    Handle::new(service).map(drop)
}

/// Deletes the service.
pub fn delete(name: &str) -> Result<(), Win32Error> {
    let service = Handle::of(name)?;
    // SAFETY: the handle has the right to delete the service.
    done(unsafe { DeleteService(service.0) })
}

/// Starts the service.
pub fn start(name: &str) -> Result<(), Win32Error> {
    let service = Handle::of(name)?;
    // SAFETY: the handle has the right to start the service; there are no arguments.
    done(unsafe { StartServiceW(service.0, 0, ptr::null()) })
}

/// Time limit for a driver to stop.
const STOP_LIMIT: Duration = Duration::from_mins(1);

/// Stops the service and waits until it has stopped. Fails with ERROR_SERVICE_REQUEST_TIMEOUT if it does not.
pub fn stop(name: &str) -> Result<(), Win32Error> {
    let service = Handle::of(name)?;
    let mut status = SERVICE_STATUS::default();
    // SAFETY: the handle has the necessary right, and the status is writable.
    done(unsafe { ControlService(service.0, SERVICE_CONTROL_STOP, &raw mut status) })?;
    let started = Instant::now();
    while status.dwCurrentState != SERVICE_STOPPED {
        if started.elapsed() > STOP_LIMIT {
            return Err(Win32Error(ERROR_SERVICE_REQUEST_TIMEOUT));
        }
        thread::sleep(Duration::from_millis(1));
        // SAFETY: the handle has the necessary right, and the status is writable.
        done(unsafe { QueryServiceStatus(service.0, &raw mut status) })?;
    }
    Ok(())
}
