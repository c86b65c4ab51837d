//! The connection of a verb to the driver of a system.

use halprof::{Driver, Error, OpenError, ServiceState};

use crate::System;
use crate::hal::HalDevice;

/// What counts, as the user chooses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendChoice {
    /// The driver if it is installed, and otherwise the HAL.
    #[default]
    Installed,
    /// The driver.
    Driver,
    /// The HAL of Windows, without the driver.
    Hal,
}

/// Opens what counts, with the imported events.
pub fn choose(system: &dyn System, choice: BackendChoice) -> Result<Driver, Error> {
    let missing = match choice {
        BackendChoice::Hal => OpenError::NotWindows.into(),
        BackendChoice::Driver => return open(system),
        BackendChoice::Installed => match open(system) {
            Err(error @ Error::Open(OpenError::NotInstalled)) => error,
            opened => return opened,
        },
    };
    let calls = system.hal().ok_or(missing)?;
    Ok(Driver::over(Box::new(HalDevice::new(calls)))?.with_imported_events(system.event_cache()))
}

/// Opens the driver, with the imported events.
pub fn open(system: &dyn System) -> Result<Driver, Error> {
    let device = system.open().map_err(|cause| OpenError::new(cause, || system.service()))?;
    Ok(Driver::over(device)?.with_imported_events(system.event_cache()))
}

/// Returns whether Windows waits for the last handle to be closed, to unload the driver.
pub fn is_to_end(system: &dyn System) -> bool {
    system.service().is_ok_and(|state| matches!(state, Some(ServiceState::Stopping)))
}
