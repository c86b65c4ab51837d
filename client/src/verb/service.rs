//! What `install` and `uninstall` share: to stop the driver, and to wait for it.

use crate::connection::Connection;
use crate::error::Error;
use crate::system::{ServiceState, System, service_error, win32};

/// How often the state is looked at before the driver counts as busy; with the pauses about ten seconds.
const LOOKS: u32 = 200;

/// The state of the service.
pub fn state(system: &dyn System) -> Result<Option<ServiceState>, Error> {
    system.service().map_err(|error| service_error("query", error))
}

/// Stops the driver and waits until it is unloaded; says whether it had to.
pub fn stop(system: &dyn System) -> Result<bool, Error> {
    if matches!(state(system)?, None | Some(ServiceState::Stopped)) {
        return Ok(false);
    }
    let holders = holders(system);
    match system.stop() {
        Ok(()) => {}
        Err(error) => match error.raw_os_error() {
            // Already down, or on its way.
            Some(win32::ERROR_SERVICE_NOT_ACTIVE | win32::ERROR_SERVICE_CANNOT_ACCEPT_CTRL) => {}
            _ => return Err(service_error("stop", error)),
        },
    }
    for _ in 0..LOOKS {
        if matches!(state(system)?, None | Some(ServiceState::Stopped)) {
            return Ok(true);
        }
        system.pause();
    }
    Err(Error::Busy { holders })
}

/// Starts the driver; that it runs already is fine.
pub fn start(system: &dyn System) -> Result<(), Error> {
    match system.start() {
        Err(error) if error.raw_os_error() != Some(win32::ERROR_SERVICE_ALREADY_RUNNING) => {
            Err(service_error("start", error))
        }
        _ => Ok(()),
    }
}

/// Sessions that a handle keeps alive; asked before the stop, after it the driver answers no one new.
fn holders(system: &dyn System) -> Vec<String> {
    let sessions = Connection::open(system).and_then(|connection| connection.sessions()).unwrap_or_default();
    sessions.iter().filter(|session| !session.detached).map(ToString::to_string).collect()
}
