//! `uninstall`: removes the driver and its service. Repeating it has the same result.

use std::fs;
use std::io::ErrorKind;

use super::context::Context;
use super::service;
use crate::driver_file::DriverFileError;
use crate::error::Error;
use crate::system::SERVICE;
use crate::system_error::{SystemError, service_error};

pub fn run(context: &mut Context) -> Result<(), Error> {
    let system = context.system()?;
    let path = system.driver_path().map_err(|cause| SystemError::Directory { cause })?;
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
    match fs::remove_file(&path) {
        Ok(()) => {
            context.say(&format!("removed {}", path.display()))?;
            done = true;
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(cause) => return Err(DriverFileError::File { action: "remove", path, cause }.into()),
    }
    if done { Ok(()) } else { context.say("not installed; nothing to do") }
}
