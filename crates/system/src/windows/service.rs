//! The service of the driver.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::io;
use std::ptr::{null, null_mut};

use halprof::SERVICE;
use windows_sys::Win32::Foundation::ERROR_SERVICE_DOES_NOT_EXIST;
use windows_sys::Win32::Storage::FileSystem::DELETE;
use windows_sys::Win32::System::Services::{
    ChangeServiceConfigW, CloseServiceHandle, ControlService, CreateServiceW, DeleteService, OpenSCManagerW,
    OpenServiceW, QUERY_SERVICE_CONFIGW, QueryServiceConfigW, SC_HANDLE, SC_MANAGER_CONNECT, SC_MANAGER_CREATE_SERVICE,
    SERVICE_CHANGE_CONFIG, SERVICE_CONTROL_STOP, SERVICE_DEMAND_START, SERVICE_ERROR_NORMAL, SERVICE_KERNEL_DRIVER,
    SERVICE_QUERY_CONFIG, SERVICE_QUERY_STATUS, SERVICE_START, SERVICE_STATUS, SERVICE_STOP, StartServiceW,
};

use super::convert::{narrow, succeeded, wide};

const DISPLAY_NAME: &str = "halprof: hardware performance counter profiling";

/// The load order group of drivers without hardware.
const LOAD_ORDER_GROUP: &str = "Extended Base";

/// Path of the driver's file, in the form of the kernel.
const IMAGE_PATH: &str = "\\SystemRoot\\System32\\drivers\\halprof.sys";

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

fn manager(access: u32) -> io::Result<Handle> {
    // SAFETY: null names mean this machine and the active database.
    Handle::new(unsafe { OpenSCManagerW(null(), null(), access) })
}

/// Opens the service; `None` if it does not exist.
fn find(access: u32) -> io::Result<Option<Handle>> {
    let (manager, name) = (manager(SC_MANAGER_CONNECT)?, wide(SERVICE));
    // SAFETY: the manager is open, and the name is zero-terminated and outlives the call.
    match Handle::new(unsafe { OpenServiceW(manager.0, name.as_ptr(), access) }) {
        Ok(service) => Ok(Some(service)),
        Err(error) if error.raw_os_error() == Some(ERROR_SERVICE_DOES_NOT_EXIST.cast_signed()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens the service, which must exist.
fn open(access: u32) -> io::Result<Handle> {
    find(access)?.ok_or_else(|| io::Error::from_raw_os_error(ERROR_SERVICE_DOES_NOT_EXIST.cast_signed()))
}

const NO_STATUS: SERVICE_STATUS = SERVICE_STATUS {
    dwServiceType: 0,
    dwCurrentState: 0,
    dwControlsAccepted: 0,
    dwWin32ExitCode: 0,
    dwServiceSpecificExitCode: 0,
    dwCheckPoint: 0,
    dwWaitHint: 0,
};

/// A buffer for the settings of a service and the texts to which they point: at most 8 KiB, according to the
/// documentation of QueryServiceConfigW.
#[repr(C, align(8))]
struct Settings([u16; 4 << 10]);

/// Returns the path of the file that the service loads, as Windows stores it; `None` if the service does not exist.
pub fn image() -> io::Result<Option<String>> {
    let Some(service) = find(SERVICE_QUERY_CONFIG)? else { return Ok(None) };
    let mut settings = Settings([0; 4 << 10]);
    let (begin, mut needed) = ((&raw mut settings).cast::<QUERY_SERVICE_CONFIGW>(), 0);
    let room = u32::try_from(size_of::<Settings>()).map_err(io::Error::other)?;
    // SAFETY: the service handle has the required access, the buffer is aligned and has the given size, and it and
    // `needed` outlive the call.
    succeeded(unsafe { QueryServiceConfigW(service.0, begin, room, &raw mut needed) })?;
    // SAFETY: the call succeeded, so the buffer begins with an initialized structure.
    let path = unsafe { (*begin).lpBinaryPathName };
    // The text is in the same buffer.
    let place = path.addr().checked_sub(begin.addr()).map(|bytes| bytes / size_of::<u16>());
    let text = place.and_then(|place| settings.0.get(place..)).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some(narrow(text).to_string_lossy().into_owned()))
}

/// Creates the service, or corrects its settings. Returns whether it is new.
pub fn register() -> io::Result<bool> {
    match find(SERVICE_CHANGE_CONFIG)? {
        Some(service) => configure(&service).map(|()| false),
        None => create().map(|()| true),
    }
}

fn create() -> io::Result<()> {
    let manager = manager(SC_MANAGER_CREATE_SERVICE)?;
    let (name, display, path, group) = (wide(SERVICE), wide(DISPLAY_NAME), wide(IMAGE_PATH), wide(LOAD_ORDER_GROUP));
    // SAFETY: the manager has the required access, every text is zero-terminated and outlives the call, and the null
    // pointers are allowed: no tag, no dependencies, and no account and password, which drivers do not have.
    let service = unsafe {
        CreateServiceW(
            manager.0,
            name.as_ptr(),
            display.as_ptr(),
            SERVICE_QUERY_STATUS,
            SERVICE_KERNEL_DRIVER,
            SERVICE_DEMAND_START,
            SERVICE_ERROR_NORMAL,
            path.as_ptr(),
            group.as_ptr(),
            null_mut(),
            null(),
            null(),
            null(),
        )
    };
    Handle::new(service).map(drop)
}

fn configure(service: &Handle) -> io::Result<()> {
    let (display, path, group) = (wide(DISPLAY_NAME), wide(IMAGE_PATH), wide(LOAD_ORDER_GROUP));
    // SAFETY: the service handle has the required access, every text is zero-terminated and outlives the call, and null
    // pointers leave settings unchanged.
    succeeded(unsafe {
        ChangeServiceConfigW(
            service.0,
            SERVICE_KERNEL_DRIVER,
            SERVICE_DEMAND_START,
            SERVICE_ERROR_NORMAL,
            path.as_ptr(),
            group.as_ptr(),
            null_mut(),
            null(),
            null(),
            null(),
            display.as_ptr(),
        )
    })
}

/// Starts the service.
pub fn start() -> io::Result<()> {
    let service = open(SERVICE_START)?;
    // SAFETY: the service handle has the required access, and no arguments are passed.
    succeeded(unsafe { StartServiceW(service.0, 0, null()) })
}

/// Asks the service to stop.
pub fn stop() -> io::Result<()> {
    let service = open(SERVICE_STOP)?;
    let mut status = NO_STATUS;
    // SAFETY: the service handle has the required access, and `status` outlives the call.
    succeeded(unsafe { ControlService(service.0, SERVICE_CONTROL_STOP, &raw mut status) })
}

/// Deletes the service. Windows removes it when the last handle is closed.
pub fn delete() -> io::Result<()> {
    let service = open(DELETE)?;
    // SAFETY: the service handle has the required access.
    succeeded(unsafe { DeleteService(service.0) })
}
