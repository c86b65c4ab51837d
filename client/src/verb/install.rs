//! `install`: copies the driver's file, creates its service and starts it. Repeating it has the same result.

use std::fs;
use std::io::{Error as IoError, ErrorKind};
use std::path::{Path, PathBuf};

use super::context::Context;
use super::service;
use crate::cli::InstallArgs;
use crate::driver_file::{self, DriverFileError, NotADriver};
use crate::error::Error;
use crate::system::{SERVICE, ServiceState};
use crate::system_error::{SystemError, service_error};

pub fn run(args: &InstallArgs, context: &mut Context) -> Result<(), Error> {
    let system = context.system()?;
    let from = args.driver.clone().map_or_else(beside_client, Ok)?;
    let to = system.driver_path().map_err(|cause| SystemError::Directory { cause })?;
    let file = read_driver(&from)?;
    let before = service::state(system)?;
    if let Some(packaged) = service::packaged(system)? {
        return start_packaged(packaged, &file, before, args.no_start, context);
    }
    let same = read_if_there(&to)?.as_ref() == Some(&file);

    if !same {
        if service::stop(system)? {
            context.say(&format!("service {SERVICE} stopped, to replace its driver"))?;
        }
        fs::write(&to, &file).map_err(|cause| DriverFileError::File { action: "write", path: to.clone(), cause })?;
        context.say(&format!("copied {} to {}", from.display(), to.display()))?;
    }
    if system.register().map_err(|error| service_error("create", error))? {
        context.say(&format!("service {SERVICE} created"))?;
    }
    let was_running = before == Some(ServiceState::Running);
    match (same && was_running, args.no_start) {
        (true, _) => context.say("already installed, with the same file, and running"),
        (false, true) if same && before.is_some() => context.say("already installed, with the same file"),
        (false, true) => context.say("installed; to start it: client install"),
        (false, false) => {
            service::start(system)?;
            context.say(&format!("service {SERVICE} started"))
        }
    }
}

/// Starts a driver that halprof.inf installed. This verb never replaces it, whatever its file.
fn start_packaged(
    path: PathBuf,
    file: &[u8],
    state: Option<ServiceState>,
    no_start: bool,
    context: &mut Context,
) -> Result<(), Error> {
    const FOUND: &str = "already installed, by halprof.inf, with the same file";
    if read_if_there(&path)?.as_deref() != Some(file) {
        return Err(DriverFileError::Packaged { path }.into());
    }
    if state == Some(ServiceState::Running) {
        return context.say(&format!("{FOUND}, and running"));
    }
    context.say(FOUND)?;
    if no_start {
        return Ok(());
    }
    service::start(context.system()?)?;
    context.say(&format!("service {SERVICE} started"))
}

/// Reads the driver's file.
///
/// # Errors
/// If the file cannot be a driver; nothing is changed then.
fn read_driver(path: &Path) -> Result<Vec<u8>, Error> {
    let not_a_driver = |cause| DriverFileError::NotADriver { path: path.to_owned(), cause };
    if path.is_dir() {
        return Err(not_a_driver(NotADriver::Folder).into());
    }
    let file =
        fs::read(path).map_err(|cause| DriverFileError::File { action: "read", path: path.to_owned(), cause })?;
    driver_file::check(&file).map_err(not_a_driver)?;
    Ok(file)
}

fn beside_client() -> Result<PathBuf, Error> {
    let client = std::env::current_exe().map_err(|cause| SystemError::Directory { cause })?;
    Ok(client.with_file_name(format!("{SERVICE}.sys")))
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(cause) => Err(DriverFileError::File { action: "read", path: path.to_owned(), cause }.into()),
    }
}

fn is_missing(error: &IoError) -> bool {
    error.kind() == ErrorKind::NotFound
}
