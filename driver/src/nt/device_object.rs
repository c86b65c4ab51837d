//! The device object and its name.

use wdk_sys::ntddk::{IoCreateDevice, IoCreateSymbolicLink, IoDeleteDevice, IoDeleteSymbolicLink};
use wdk_sys::{
    DO_DEVICE_INITIALIZING, DRIVER_OBJECT, FILE_DEVICE_SECURE_OPEN, FILE_DEVICE_UNKNOWN, NTSTATUS, PDEVICE_OBJECT,
    PDRIVER_OBJECT,
};

use super::irp::check;
use super::security;
use super::system_process;
use super::text::Text;

static NAME: Text<{ protocol::DEVICE_NAME.len() }> = Text::new(protocol::DEVICE_NAME);
static LINK: Text<{ protocol::LINK_NAME.len() }> = Text::new(protocol::LINK_NAME);

/// Makes the device: protected first, then named for Win32, then open. PASSIVE_LEVEL.
///
/// # Errors
/// The NTSTATUS of what failed; nothing is left behind.
pub fn create(driver: &mut DRIVER_OBJECT) -> Result<(), NTSTATUS> {
    let mut device: PDEVICE_OBJECT = core::ptr::null_mut();
    // SAFETY: the driver object is the I/O manager's; the name is only read
    let status = unsafe {
        IoCreateDevice(driver, 0, &mut NAME.counted(), FILE_DEVICE_UNKNOWN, FILE_DEVICE_SECURE_OPEN, 0, &raw mut device)
    };
    check(status)?;
    // DO_DEVICE_INITIALIZING is still set: the I/O manager refuses to open the device.
    let named = security::protect(device).and_then(|()| {
        // SAFETY: both names are only read
        check(unsafe { IoCreateSymbolicLink(&mut LINK.counted(), &mut NAME.counted()) })
    });
    if let Err(status) = named {
        // SAFETY: made above, and nobody has it
        unsafe { IoDeleteDevice(device) };
        return Err(status);
    }
    system_process::initialize(device);
    // SAFETY: made above, and not shared before this line
    unsafe { (*device).Flags &= !DO_DEVICE_INITIALIZING };
    Ok(())
}

/// The driver stays loaded until the next boot: something of the system may still call it. Any IRQL.
pub fn forbid_unload() {
    let device = system_process::device();
    if !device.is_null() {
        // SAFETY: the driver's own device, which `delete` has not taken away: unload comes first
        let driver = unsafe { (*device).DriverObject };
        // SAFETY: the driver's own object; the I/O manager reads the field when it is asked to unload
        unsafe { (*driver).DriverUnload = None };
    }
}

/// Takes the name away by which programs open the device. PASSIVE_LEVEL.
pub fn unlink() {
    // SAFETY: the name is only read. It can not be missing: nobody else may delete it.
    let _ = unsafe { IoDeleteSymbolicLink(&mut LINK.counted()) };
}

/// Takes the device away. PASSIVE_LEVEL.
pub fn delete(driver: PDRIVER_OBJECT) {
    // SAFETY: the I/O manager calls the unload routine with the driver's own object
    let device = unsafe { (*driver).DeviceObject };
    system_process::initialize(core::ptr::null_mut());
    // SAFETY: the one device that `create` made
    unsafe { IoDeleteDevice(device) };
}
