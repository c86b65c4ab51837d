//! The end of a driver as in Windows: a stop tests the unload routine when it arrives, is pending while a handle is
//! open, and goes on at the last close with the routine of then, if there is one. The image stays as long as the driver
//! has a reference of its driver object.

#![expect(unsafe_code, reason = "reads and writes driver objects, and calls routines of the driver")]

use crate::{
    kernel::{driver_object::with_state, loaded_images, remains},
    lock::lock,
    nt::{self, NtStatus, Pointer},
    state::machine::MACHINE,
    violation,
};
use bench_protocol::StopState;
use std::thread;

/// Offset of `DRIVER_OBJECT.DriverUnload` (wdm.h, x64).
const UNLOAD: usize = 0x68;

/// IRP_MJ_CREATE and IRP_MJ_CLOSE.
const CREATE: u8 = 0;
const CLOSE: u8 = 2;

type Unload = unsafe extern "system" fn(Pointer);

/// Replaces the unload routine after it was called, so that Wine does not call it again.
unsafe extern "system" fn nothing_left(_driver: Pointer) {}

/// Returns the place of the unload routine.
fn unload_slot(driver: usize) -> *mut Option<Unload> {
    std::ptr::with_exposed_provenance_mut(driver + UNLOAD)
}

/// Returns the unload routine, if there is one.
fn unload_routine(driver: usize) -> Option<Unload> {
    // SAFETY: a driver object exists as long as its driver is loaded; the field is a function or null.
    unsafe { unload_slot(driver).read_volatile() }
}

/// Releases a reference of a driver object. Returns `None` for other objects.
pub fn dereference(object: Pointer) -> Option<isize> {
    let (left, goes) = with_state(object.addr(), |state| {
        if state.references == 0 {
            violation::other("ObfDereferenceObject of the driver object, of which the driver has no reference");
        }
        state.references = state.references.saturating_sub(1);
        (state.references, state.references == 0 && state.stop == StopState::Over)
    })?;
    if goes {
        image_goes(object.addr());
    }
    Some(isize::try_from(left).unwrap_or(isize::MAX))
}

/// Records that a dispatch routine of a driver has returned.
pub fn served(driver: usize, major: u8, status: NtStatus) {
    let is_over = with_state(driver, |state| {
        match major {
            CREATE if status == nt::SUCCESS => state.handles += 1,
            CLOSE => state.handles = state.handles.saturating_sub(1),
            _ => {}
        }
        major == CLOSE && state.handles == 0 && state.stop == StopState::Pending
    });
    if is_over == Some(true) {
        // As in Windows, on a thread of its own: the request is still in the hands of the I/O manager.
        thread::spawn(move || go_on(driver));
    }
}

/// Stops the driver as `sc stop` does. Returns what follows.
pub fn stop() -> Result<StopState, String> {
    let mut known = lock(&MACHINE.kernel.driver_object.0);
    let state = known.as_mut().ok_or("no driver has created a device")?;
    if unload_routine(state.address).is_none() {
        return Ok(StopState::Refused);
    }
    state.stop = StopState::Pending;
    let (driver, is_open) = (state.address, state.handles > 0);
    drop(known);
    if !is_open {
        go_on(driver);
    }
    state_of_stop()
}

/// Returns the state of the stop.
pub fn state_of_stop() -> Result<StopState, String> {
    let known = lock(&MACHINE.kernel.driver_object.0);
    Ok(known.as_ref().ok_or("no driver has created a device")?.stop)
}

/// Unloads a driver of which no handle is open.
fn go_on(driver: usize) {
    if let Some(unload) = unload_routine(driver) {
        // SAFETY: the driver set this routine; no handle of its devices is open.
        unsafe { unload(std::ptr::with_exposed_provenance_mut(driver)) };
        // SAFETY: the driver object exists as long as Wine has the driver loaded.
        unsafe { unload_slot(driver).write_volatile(Some(nothing_left)) };
    }
    let references = with_state(driver, |state| state.references);
    if references == Some(0) {
        image_goes(driver);
    }
    with_state(driver, |state| state.stop = StopState::Over);
}

/// Checks that nothing calls the image of a driver, which Windows removes now. In Wine it stays until its service is
/// stopped.
fn image_goes(driver: usize) {
    if let Some(Some(addresses)) = with_state(driver, |state| loaded_images::addresses_around(state.code)) {
        remains::check(&addresses);
    }
}
