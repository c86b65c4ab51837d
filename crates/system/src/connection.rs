//! The connection of a verb to the driver of a system, or to its HAL.

use std::ops::Deref;

use halprof::{Driver, Error, OpenError, ServiceState};

use crate::System;
use crate::hal::HalDevice;
use crate::trace::{TraceError, TracePlan, TraceSession, TraceSink};

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
    /// Its profile objects, without administrator.
    ProfileObjects,
}

/// What counts, and what delivers the call stacks of its samples.
pub struct Connection {
    driver: Driver,
    /// The same without the driver; `None` with it.
    hal: Option<HalDevice>,
}

impl Deref for Connection {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        &self.driver
    }
}

impl Connection {
    /// Returns what counts, without the call stacks.
    #[must_use]
    pub fn into_driver(self) -> Driver {
        self.driver
    }

    /// Starts what delivers the call stacks of samples to `sink`.
    pub fn trace(
        &self,
        system: &dyn System,
        plan: &TracePlan,
        sink: TraceSink,
    ) -> Result<Box<dyn TraceSession>, TraceError> {
        match &self.hal {
            Some(hal) => Ok(hal.trace(plan.off_cpu, sink)),
            None => system.trace(plan, sink),
        }
    }
}

/// Opens what counts, with the imported events.
pub fn choose(system: &dyn System, choice: BackendChoice) -> Result<Connection, Error> {
    let with_driver = |driver| Connection { driver, hal: None };
    let missing = match choice {
        BackendChoice::Hal | BackendChoice::ProfileObjects => OpenError::NotWindows.into(),
        BackendChoice::Driver => return open(system).map(with_driver),
        BackendChoice::Installed => match open(system) {
            Err(error @ Error::Open(OpenError::NotInstalled)) => error,
            opened => return opened.map(with_driver),
        },
    };
    let hal = HalDevice::new(system.hal().ok_or(missing)?, choice == BackendChoice::ProfileObjects);
    let driver = Driver::over(Box::new(hal.clone()))?.with_imported_events(system.event_cache());
    Ok(Connection { driver, hal: Some(hal) })
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
