//! The dispatch of requests. Wine maps a client's pages before it.

#![expect(unsafe_code, reason = "reads and writes requests, and calls routines of the driver")]

use crate::{
    kernel::{
        driver_end, irql, loaded_images,
        requests::{DEVICE_CONTROL, Device, Irp, Mdl, PENDING, expect_irql},
        stepping, threads,
    },
    lock::lock,
    nt::{self, NtStatus},
    state::machine::MACHINE,
    violation::{self, catch_panic},
};
use bench_protocol::StepEntry;

/// Implements IoCallDriver: calls the dispatch routine. As in Windows, the client's pages are locked and not mapped.
pub unsafe extern "system" fn call_driver(device: *mut Device, irp: *mut Irp) -> NtStatus {
    catch_panic("IoCallDriver", nt::UNSUCCESSFUL, || {
        // SAFETY: the sender owns the request until the driver is called.
        let request = unsafe { &mut *irp };
        request.location -= 1;
        request.stack = request.stack.wrapping_sub(1);
        // SAFETY: a request has as many stack locations as the device needs.
        let stack = unsafe { &mut *request.stack };
        stack.device = device;
        // SAFETY: a device has a driver.
        let driver = unsafe { (*device).driver };
        // SAFETY: a driver has dispatch routines.
        let routines = unsafe { &(*driver).major };
        let Some(routine) = routines.get(usize::from(stack.major)).copied() else { return nt::INVALID_PARAMETER };
        let address = routine as *const ();
        let is_drivers = loaded_images::contains(address.addr());
        if is_drivers {
            lock(&MACHINE.kernel.requests).begin(irp.addr(), address.addr());
            // SAFETY: the MDL belongs to the request, or the pointer is null.
            unsafe { request.mdl.as_mut() }.map(Mdl::unmap);
        }
        let before = irql::current();
        // Parameters.DeviceIoControl.IoControlCode
        let [_, _, code, _] = stack.parameters;
        let entry = StepEntry::Request { code: (code & 0xFFFF_FFFF) as u32 };
        let major = stack.major;
        let is_control = major == DEVICE_CONTROL;
        let serve = || {
            if is_drivers && is_control {
                let arguments = [device.expose_provenance(), irp.expose_provenance(), 0, 0];
                // SAFETY: the driver set this routine for requests of this kind, and owns the request from here on.
                let status = unsafe { stepping::call(entry, address, arguments) };
                nt::status(u32::try_from(status & 0xFFFF_FFFF).unwrap_or_default())
            } else {
                // SAFETY: as above.
                unsafe { routine(device, irp) }
            }
        };
        let status = if is_drivers && is_control { threads::with_request(serve) } else { serve() };
        expect_irql("a dispatch routine", before);
        if is_drivers {
            driver_end::served(driver.expose_provenance(), major, status);
        }
        if is_drivers && let Some(what) = lock(&MACHINE.kernel.requests).returned(irp.addr(), status == PENDING) {
            violation::other(format!("the request {irp:p} {what}"));
        }
        status
    })
}
