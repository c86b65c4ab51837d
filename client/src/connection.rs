//! The connection of a verb to the driver of a system.

use halprof::{Driver, Error, OpenError};

use crate::system::System;

/// Opens the driver, with the events that the user imported.
pub fn open(system: &dyn System) -> Result<Driver, Error> {
    let device = system.open().map_err(|cause| OpenError::new(cause, || system.service()))?;
    Ok(Driver::over(device)?.with_imported_events(system.cache_folder()))
}
