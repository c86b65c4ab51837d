//! The driver and the system that groups use.

use std::rc::Rc;

use crate::driver::Driver;
use crate::error::Error;
#[cfg(not(windows))]
use crate::open::OpenError;
use crate::system::System;
use crate::verification::{self, MachineIdentity, Verification};

/// The driver and the system of a machine. Groups of several builders can share one.
///
/// The copies share one handle to the driver. It belongs to one thread; every thread needs its own.
#[derive(Clone)]
pub struct Machine {
    driver: Rc<Driver>,
    system: Rc<dyn System>,
}

impl Machine {
    /// Opens the driver of this machine.
    ///
    /// # Errors
    /// If the driver is not installed or not started, access is denied, or the program was not built for Windows.
    pub fn open() -> Result<Self, Error> {
        let driver = Driver::open()?;
        #[cfg(windows)]
        return Ok(Self::over(driver, Rc::new(crate::windows::WindowsSystem::new())));
        #[cfg(not(windows))]
        {
            drop(driver);
            Err(OpenError::NotWindows.into())
        }
    }

    /// Returns the machine with this driver and system.
    #[must_use]
    pub fn over(driver: Driver, system: Rc<dyn System>) -> Self {
        Self { driver: Rc::new(driver), system }
    }

    /// Returns the driver.
    #[must_use]
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns what a [verification record](verification) of this machine holds for.
    ///
    /// # Errors
    /// If the driver does not answer, or the build of Windows is unknown.
    pub fn identity(&self) -> Result<MachineIdentity, Error> {
        let info = self.driver.info()?;
        let brand = info.brand.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(MachineIdentity {
            windows_build: self.system.windows_build().unwrap_or_default(),
            signature: info.signature,
            brand: String::from_utf8_lossy(brand).trim().to_owned(),
            driver: self.driver.driver_version(),
        })
    }

    /// Returns what was verified about thread profiling on this machine; `None` if nothing was.
    ///
    /// # Errors
    /// If the driver does not answer.
    pub fn verification(&self) -> Result<Option<Verification>, Error> {
        let identity = self.identity()?;
        // Without its build, one Windows cannot be told from the next.
        Ok(Some(identity)
            .filter(|identity| !identity.windows_build.is_empty())
            .and_then(|identity| verification::read(&*self.system, &identity)))
    }

    pub(crate) fn shared_driver(&self) -> Rc<Driver> {
        self.driver.clone()
    }

    pub(crate) fn system(&self) -> Rc<dyn System> {
        self.system.clone()
    }
}
