//! The device object: access to it, and dispatch of requests to the engine.

#![expect(unsafe_code, reason = "dispatch routines get raw pointers from the I/O manager")]

use engine::{ClientId, Completion, Engine};
use wdk_sys::{
    DRIVER_OBJECT, IRP_MJ_CLEANUP, IRP_MJ_CLOSE, IRP_MJ_CREATE, IRP_MJ_DEVICE_CONTROL, NTSTATUS, PDEVICE_OBJECT,
    PDRIVER_OBJECT, PIRP, STATUS_DELETE_PENDING, STATUS_INVALID_DEVICE_REQUEST, STATUS_PRIVILEGE_NOT_HELD,
    STATUS_SUCCESS,
};

use protocol::{Code, Method};

use crate::kernel::Kernel;
use crate::nt::fast_mutex::FastMutex;
use crate::nt::irp::{Major, Request};
use crate::nt::{device_object, privilege};
use crate::{interrupt, waiting};
use interrupt_path::current_process;

/// The engine, from DriverEntry to unload.
pub static ENGINE: FastMutex<Option<Engine<Kernel>>> = FastMutex::new(None);

/// The one device of the driver.
pub struct Device;

impl Device {
    /// Creates the device and sets the dispatch routines.
    ///
    /// # Errors
    /// The NTSTATUS of the call that failed; everything is undone.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn create(driver: &mut DRIVER_OBJECT) -> Result<(), NTSTATUS> {
        for major in [IRP_MJ_CREATE, IRP_MJ_CLEANUP, IRP_MJ_CLOSE, IRP_MJ_DEVICE_CONTROL] {
            if let Some(routine) = driver.MajorFunction.get_mut(major as usize) {
                *routine = Some(dispatch);
            }
        }
        device_object::create(driver)
    }

    /// Deletes the Win32 name of the device.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn unlink() {
        device_object::unlink();
    }

    /// Deletes the device, and lets the image go when the unload routine returns.
    ///
    /// # IRQL
    /// PASSIVE_LEVEL.
    pub fn delete(driver: PDRIVER_OBJECT) {
        device_object::delete(driver);
        device_object::release(driver);
    }
}

/// Dispatch routine of all requests. The I/O manager calls it in the caller's process.
///
/// # IRQL
/// PASSIVE_LEVEL.
unsafe extern "C" fn dispatch(_device: PDEVICE_OBJECT, irp: PIRP) -> NTSTATUS {
    // SAFETY: the I/O manager passed this packet
    let request = unsafe { Request::new(irp) };
    serve(request)
}

fn serve(mut request: Request<'static>) -> NTSTATUS {
    let client = ClientId(request.file());
    if matches!(request.major(), Major::Create) && !privilege::may_profile() {
        return request.complete(STATUS_PRIVILEGE_NOT_HELD, 0);
    }
    if let Some(done) = read_group(client, &mut request) {
        return request.complete(done.status.into(), done.information);
    }
    let mut engine = ENGINE.lock();
    let Some(engine) = engine.as_mut() else {
        return request.complete(STATUS_DELETE_PENDING, 0);
    };
    // Each is a function of its own, so that only its stack is in use.
    match request.major() {
        Major::Create => open(engine, client, request),
        Major::Release => close(engine, client, request),
        Major::DeviceControl => {
            if protocol::find(request.code()).is_some_and(|spec| spec.method == Method::OutDirect) {
                return waiting::begin(engine, request);
            }
            control(engine, client, request)
        }
        Major::Other => request.complete(STATUS_INVALID_DEVICE_REQUEST, 0),
    }
}

#[inline(never)]
fn open(engine: &mut Engine<Kernel>, client: ClientId, request: Request<'static>) -> NTSTATUS {
    let status = engine.open(client, current_process());
    request.complete(status.into(), 0)
}

#[inline(never)]
fn close(engine: &mut Engine<Kernel>, client: ClientId, request: Request<'static>) -> NTSTATUS {
    engine.close(client);
    waiting::cancel(Some(client));
    request.complete(STATUS_SUCCESS, 0)
}

/// Serves a request whose input and output share a buffer.
#[inline(never)]
fn control(engine: &mut Engine<Kernel>, client: ClientId, mut request: Request<'static>) -> NTSTATUS {
    let code = request.code();
    let (buffer, input, output) = request.buffered();
    let done = engine.serve(engine::Request { client, code, buffer, input, output });
    if code == Code::Stop as u32 {
        crate::wake(); // a request may wait for samples of the stopped session
    }
    request.complete(done.status.into(), done.information)
}

/// Serves a request that reads counters of the current processor, without the engine's lock. Returns `None` for other
/// requests, and for one that the engine has to refuse.
///
/// The request keeps its handle's file object until it completes, and the sampler with it. If another thread closes the
/// handle meanwhile, the session ends on this processor before the read or after it.
#[inline(never)]
fn read_group(client: ClientId, request: &mut Request<'_>) -> Option<Completion> {
    let code = request.code();
    if !matches!(request.major(), Major::DeviceControl) || code != Code::ReadGroup as u32 {
        return None;
    }
    let (buffer, input, output) = request.buffered();
    engine::Request { client, code, buffer, input, output }.read_group(interrupt::read_group)
}
