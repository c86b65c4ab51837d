//! The state of the driver's service.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::ptr::null;

use windows_sys::Win32::Foundation::ERROR_SERVICE_DOES_NOT_EXIST;
use windows_sys::Win32::System::Services::{
    CloseServiceHandle, OpenSCManagerW, OpenServiceW, QueryServiceStatus, SC_HANDLE, SC_MANAGER_CONNECT,
    SERVICE_QUERY_STATUS, SERVICE_RUNNING, SERVICE_START_PENDING, SERVICE_STATUS, SERVICE_STOPPED,
};

use super::{succeeded, wide};
use crate::open::{SERVICE, ServiceState};

/// A handle of the service control manager.
struct Handle(SC_HANDLE);

impl Handle {
    fn new(handle: SC_HANDLE) -> io::Result<Self> {
        if handle.is_null() { Err(io::Error::last_os_error()) } else { Ok(Self(handle)) }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: `new` rejects null, and nothing else closes the handle. A failure has no remedy.
        unsafe { CloseServiceHandle(self.0) };
    }
}

/// Opens the service for queries; `None` if it does not exist.
fn find() -> io::Result<Option<Handle>> {
    // SAFETY: null names mean this machine and the active database.
    let manager = Handle::new(unsafe { OpenSCManagerW(null(), null(), SC_MANAGER_CONNECT) })?;
    let name = wide(SERVICE);
    // SAFETY: the manager is open, and the name is zero-terminated and outlives the call.
    match Handle::new(unsafe { OpenServiceW(manager.0, name.as_ptr(), SERVICE_QUERY_STATUS) }) {
        Ok(service) => Ok(Some(service)),
        Err(error) if error.raw_os_error() == Some(ERROR_SERVICE_DOES_NOT_EXIST.cast_signed()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the state of the driver's service; `None` if it does not exist.
///
/// # Errors
/// The Win32 error, if the service cannot be queried.
pub fn service_state() -> io::Result<Option<ServiceState>> {
    let Some(service) = find()? else { return Ok(None) };
    let mut status = SERVICE_STATUS::default();
    // SAFETY: the service handle has the required access, and `status` outlives the call.
    succeeded(unsafe { QueryServiceStatus(service.0, &raw mut status) })?;
    Ok(Some(match status.dwCurrentState {
        SERVICE_STOPPED => ServiceState::Stopped,
        SERVICE_RUNNING => ServiceState::Running,
        SERVICE_START_PENDING => ServiceState::Starting,
        _ => ServiceState::Stopping,
    }))
}
