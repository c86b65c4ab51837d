//! The driver object of a driver under test: its references and open handles.

#![expect(unsafe_code, reason = "reads driver objects")]

use crate::{
    lock::lock,
    nt::Pointer,
    state::{driver_object::DriverState, machine::MACHINE},
};
use bench_protocol::StopState;
use std::ops::Range;

/// Offset of the first dispatch routine in DRIVER_OBJECT (wdm.h, x64).
const DISPATCH: usize = 0x70;

/// Calls `body` with the state of the driver of this object, if it is one.
pub fn with_state<T>(driver: usize, body: impl FnOnce(&mut DriverState) -> T) -> Option<T> {
    let mut state = lock(&MACHINE.kernel.driver_object.0);
    state.as_mut().filter(|state| state.address == driver).map(body)
}

/// Records that a driver creates a device.
pub fn device_created(driver: Pointer) {
    let address = driver.expose_provenance();
    // SAFETY: the driver must pass its driver object, whose dispatch routines are in its image or Wine's.
    let code = unsafe { std::ptr::with_exposed_provenance::<usize>(address + DISPATCH).read() };
    let state = DriverState { address, code, references: 0, handles: 0, stop: StopState::Runs };
    lock(&MACHINE.kernel.driver_object.0).replace(state);
}

/// Forgets the driver object of an image that Wine has unloaded.
pub fn image_unloaded(addresses: &Range<usize>) {
    lock(&MACHINE.kernel.driver_object.0).take_if(|state| addresses.contains(&state.code));
}
