//! `install`: restricts the driver's events, copies the driver's file, creates its service and starts it. Repeating it
//! has the same result.
//!
//! Everything that can be checked is checked before the running driver is stopped. After that, a failure at any step
//! puts the old driver back ([`Attempt`]).

mod attempt;
mod error;

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::InstallArgs;
use crate::machine::driver_file::{self, DriverFileError, NotADriver};
use crate::machine::installed_driver::InstalledDriver;
use crate::machine::provider_security;
use crate::machine::service::{self, DriverBusy};
use attempt::Attempt;
pub use error::InstallError;
#[cfg(test)]
pub use error::Undone;
use halprof::{SERVICE, ServiceState};
use system::System;
use system::connection;
use terminal::context::Context;
use user_error::Error;
use user_error::system_error::SystemError;

pub fn run(args: &InstallArgs, context: &mut Context) -> Result<(), Error> {
    let system = context.system()?;
    context.check_processor()?;
    let from = args.driver.clone().map_or_else(beside_client, Ok)?;
    let file = read_driver(&from)?;
    let before = service::state(system)?;
    if let Some(packaged) = service::packaged(system)? {
        return start_packaged(packaged, &file, before, args.no_start, context);
    }
    let attempt = Attempt::new(system, InstalledDriver::new(system)?, file, before)?;
    if attempt.starts_something(args.no_start) && !args.any_signature {
        check_signature(&from, attempt.file(), system)?;
    }
    if attempt.stops_the_driver() {
        check_sessions(args.end_sessions, system)?;
    }
    for line in attempt.run(&from, args.no_start)? {
        context.say(&line)?;
    }
    Ok(())
}

/// Starts a driver that halprof.inf installed. This verb never replaces it, whatever its file. The INF restricts the
/// driver's events; if Windows did not, this does.
fn start_packaged(
    path: PathBuf,
    file: &[u8],
    state: Option<ServiceState>,
    no_start: bool,
    context: &mut Context,
) -> Result<(), Error> {
    const FOUND: &str = "already installed, by halprof.inf, with the same file";
    let installed = fs::read(&path);
    if !installed.is_ok_and(|installed| installed == file) {
        return Err(DriverFileError::Packaged { path }.into());
    }
    let runs = state == Some(ServiceState::Running);
    for line in provider_security::restrict(context.system()?)?.lines(runs) {
        context.say(&line)?;
    }
    if runs {
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
/// If the file is not halprof's driver for this client.
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

/// Checks that Windows can accept the signature. If Windows does not say what it requires, it decides at the start.
fn check_signature(path: &Path, file: &[u8], system: &dyn System) -> Result<(), Error> {
    let Ok(windows) = system.code_integrity() else { return Ok(()) };
    Ok(driver_file::check_signature(file, windows)
        .map_err(|cause| DriverFileError::Signature { path: path.to_owned(), cause })?)
}

/// Checks that the running driver can be stopped. If it does not answer, for example because it is of another protocol
/// version, it is stopped with whatever it runs.
fn check_sessions(end_detached: bool, system: &dyn System) -> Result<(), Error> {
    let sessions = connection::open(system).and_then(|connection| connection.sessions()).unwrap_or_default();
    // The agent, whose sessions yield, closes its handle when the driver is to be stopped.
    let others = sessions.iter().filter(|session| !session.yields);
    let (detached, bound): (Vec<_>, Vec<_>) = others.partition(|session| session.detached);
    let lines = |sessions: Vec<_>| sessions.iter().map(ToString::to_string).collect();
    if !bound.is_empty() {
        return Err(DriverBusy { sessions: lines(bound) }.into());
    }
    if !detached.is_empty() && !end_detached {
        return Err(InstallError::SessionsRun(lines(detached)).into());
    }
    Ok(())
}

fn beside_client() -> Result<PathBuf, Error> {
    let client = std::env::current_exe().map_err(|cause| SystemError::Directory { cause })?;
    Ok(client.with_file_name(format!("{SERVICE}.sys")))
}
