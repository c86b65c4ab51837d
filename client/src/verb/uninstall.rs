//! `uninstall`: removes the driver, its service and the restriction of its events. Repeating it has the same result.

use halprof::SERVICE;

use crate::machine::driver_file::DriverFileError;
use crate::machine::installed_driver::InstalledDriver;
use crate::machine::provider_security;
use crate::machine::service;
use terminal::context::Context;
use user_error::Error;
use user_error::system_error::service_error;

pub fn run(context: &mut Context) -> Result<(), Error> {
    let system = context.system()?;
    let files = InstalledDriver::new(system)?;
    let mut done = false;
    if let Some(path) = service::packaged(system)? {
        return Err(DriverFileError::Packaged { path }.into());
    }
    if service::state(system)?.is_some() {
        if service::stop(system)? {
            context.say(&format!("service {SERVICE} stopped"))?;
        }
        system.delete().map_err(|error| service_error("delete", error))?;
        context.say(&format!("service {SERVICE} deleted"))?;
        done = true;
    }
    // An installation that did not finish leaves the other two.
    if files.remove_previous()? | files.remove_temporary()? | files.remove()? {
        context.say(&format!("removed {}", files.path().display()))?;
        done = true;
    }
    // Also after pnputil removed the driver, which leaves it.
    if provider_security::remove(system)? {
        context.say("removed the restriction of the driver's events")?;
        done = true;
    }
    if let Some(loaded) = files.remove_loaded() {
        context.say(&format!("{} is still loaded; it can be removed after a restart", loaded.display()))?;
    }
    if done { Ok(()) } else { context.say("not installed; nothing to do") }
}
