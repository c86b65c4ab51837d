//! The connection of a verb to the driver of a system.

use halprof::{Driver, Error, OpenError, ServiceState};

use crate::System;

/// Opens the driver, with the imported events.
pub fn open(system: &dyn System) -> Result<Driver, Error> {
    let device = system.open().map_err(|cause| OpenError::new(cause, || system.service()))?;
    Ok(Driver::over(device)?.with_imported_events(system.event_cache()))
}

/// Returns whether Windows waits for the last handle to be closed, to unload the driver.
pub fn is_to_end(system: &dyn System) -> bool {
    system.service().is_ok_and(|state| matches!(state, Some(ServiceState::Stopping)))
}
