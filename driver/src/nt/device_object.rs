//! The device object and its name.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use wdk_sys::ntddk::{
    IoCreateDevice, IoCreateSymbolicLink, IoDeleteDevice, IoDeleteSymbolicLink, ObfDereferenceObject,
    ObfReferenceObject,
};
use wdk_sys::{
    DO_DEVICE_INITIALIZING, DRIVER_OBJECT, FILE_DEVICE_SECURE_OPEN, FILE_DEVICE_UNKNOWN, NTSTATUS, PDEVICE_OBJECT,
    PDRIVER_OBJECT, PDRIVER_UNLOAD,
};

use super::irp::check;
use super::security;
use super::system_process;
use super::text::Text;

static NAME: Text<{ protocol::DEVICE_NAME.len() }> = Text::new(protocol::DEVICE_NAME);
static LINK: Text<{ protocol::LINK_NAME.len() }> = Text::new(protocol::LINK_NAME);

/// Creates the device, protects it, gives it its Win32 name, and lets programs open it, in this order.
///
/// # Errors
/// The NTSTATUS of the call that failed; everything is undone.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn create(driver: &mut DRIVER_OBJECT) -> Result<(), NTSTATUS> {
    let mut device: PDEVICE_OBJECT = core::ptr::null_mut();
    // SAFETY: the driver object comes from the I/O manager; the name is only read
    let status = unsafe {
        IoCreateDevice(driver, 0, &mut NAME.counted(), FILE_DEVICE_UNKNOWN, FILE_DEVICE_SECURE_OPEN, 0, &raw mut device)
    };
    check(status)?;
    // While DO_DEVICE_INITIALIZING is set, the I/O manager refuses to open the device.
    let named = security::protect(device).and_then(|()| {
        // SAFETY: both names are only read
        check(unsafe { IoCreateSymbolicLink(&mut LINK.counted(), &mut NAME.counted()) })
    });
    if let Err(status) = named {
        // SAFETY: created above, and not in use
        unsafe { IoDeleteDevice(device) };
        return Err(status);
    }
    system_process::initialize(device);
    // SAFETY: created above, and not shared yet
    unsafe { (*device).Flags &= !DO_DEVICE_INITIALIZING };
    Ok(())
}

/// Why the driver must stay loaded.
#[derive(Debug, Clone, Copy)]
#[repr(u32)]
pub enum Keep {
    /// The HAL may still call the interrupt handler.
    InterruptHandler = 1,
    /// Windows' thread profiling still reads the counters that the driver runs.
    ThreadProfiling = 2,
}

/// The reasons that hold, as bits.
static KEPT: AtomicU32 = AtomicU32::new(0);

/// Returns whether the driver must stay loaded for any reason.
///
/// # IRQL
/// Any.
pub fn is_kept() -> bool {
    KEPT.load(Ordering::Relaxed) != 0
}

/// Whether the driver has a reference of its driver object, which keeps the image in memory.
static PINNED: AtomicBool = AtomicBool::new(false);

/// Sets whether the driver must stay loaded for a reason. While it must for any, it has no unload routine, so that a
/// stop is refused.
///
/// That does not refuse a stop which arrived before, while a handle was open: at the last close the I/O manager goes
/// on. The image then stays because of a reference of the driver object. Only the [unload routine](release) returns it:
/// if the I/O manager has gone on without one, nothing has ended the threads and callbacks of the driver, and the image
/// must never go.
///
/// # IRQL
/// At most APC_LEVEL. The callers hold the engine's lock, or the driver is being unloaded.
pub fn keep_loaded(reason: Keep, keep: bool) {
    let others = KEPT.load(Ordering::Relaxed) & !(reason as u32);
    let kept = if keep { others | reason as u32 } else { others };
    KEPT.store(kept, Ordering::Relaxed);
    let device = system_process::device();
    if device.is_null() {
        return;
    }
    // SAFETY: the driver's own device, which is deleted only during unload
    let driver = unsafe { (*device).DriverObject };
    if kept != 0 && !PINNED.swap(true, Ordering::Relaxed) {
        // SAFETY: the driver's own object
        unsafe { ObfReferenceObject(driver.cast()) };
    }
    let routine: PDRIVER_UNLOAD = if kept == 0 { Some(crate::unload) } else { None };
    // SAFETY: the driver's own object; the I/O manager reads the field when it unloads the driver
    unsafe { (*driver).DriverUnload = routine };
}

/// Lets the image go when the unload routine returns, unless the HAL or the kernel still refuses what the driver gave
/// back: then the image stays until the machine restarts. The last call of the unload routine.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn release(driver: PDRIVER_OBJECT) {
    if !is_kept() && PINNED.swap(false, Ordering::Relaxed) {
        // SAFETY: `keep_loaded` took the reference; the I/O manager has one of its own until the unload routine returns
        unsafe { ObfDereferenceObject(driver.cast()) };
    }
}

/// Deletes the Win32 name of the device.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn unlink() {
    // SAFETY: the name is only read. It exists: only this driver deletes it.
    let _ = unsafe { IoDeleteSymbolicLink(&mut LINK.counted()) };
}

/// Deletes the device.
///
/// # IRQL
/// PASSIVE_LEVEL.
pub fn delete(driver: PDRIVER_OBJECT) {
    // SAFETY: the I/O manager calls the unload routine with the driver's own object
    let device = unsafe { (*driver).DeviceObject };
    system_process::initialize(core::ptr::null_mut());
    // SAFETY: the only device of the driver, from `create`
    unsafe { IoDeleteDevice(device) };
}
