//! The service of the driver, for `install` and `uninstall`.

use std::path::{Path, PathBuf};

use halprof::ServiceState;
use thiserror::Error as ThisError;

use system::System;
use system::connection;
use user_error::exit::Exit;
use user_error::system_error::{SystemError, service_error};
use user_error::win32;
use user_error::{Error, UserError};

/// The driver does not unload, because a program has a handle to its device.
#[derive(Debug, ThisError)]
#[error("the driver does not stop: a program holds its device open{}", held_by(.sessions))]
pub struct DriverBusy {
    /// Sessions that are bound to a handle, one line each.
    pub sessions: Vec<String>,
}

fn held_by(sessions: &[String]) -> String {
    if sessions.is_empty() { String::new() } else { format!("\n  held by: {}", sessions.join("\n           ")) }
}

impl UserError for DriverBusy {
    fn exit(&self) -> Exit {
        Exit::Busy
    }

    fn remedy(&self) -> Option<String> {
        Some("end the program, then repeat the command".to_owned())
    }
}

/// Number of checks before the driver is considered busy; together with the pauses they take about ten seconds.
const MAX_POLLS: u32 = 200;

/// Returns the state of the service.
pub fn state(system: &dyn System) -> Result<Option<ServiceState>, Error> {
    system.service().map_err(|error| service_error("query", error))
}

/// Returns the driver's file if halprof.inf installed the service: the file is in the driver store, not where `install`
/// copies it.
pub fn packaged(system: &dyn System) -> Result<Option<PathBuf>, Error> {
    let own = system.driver_path().map_err(|cause| SystemError::Directory { cause })?;
    let Some(image) = system.image().map_err(|error| service_error("query", error))? else { return Ok(None) };
    let windows = own.ancestors().nth(3).unwrap_or(&own); // above System32\drivers
    let image = win32_path(&image, windows);
    let same = image.as_os_str().eq_ignore_ascii_case(own.as_os_str());
    Ok(if same { None } else { Some(image) })
}

/// Converts the path of an image to a Win32 path. A path of the kernel can start with `\SystemRoot\`, with `\??\`, or
/// be relative to the directory of Windows.
fn win32_path(image: &str, windows: &Path) -> PathBuf {
    const IN_WINDOWS: &str = "\\SystemRoot\\";
    let below = match image.get(..IN_WINDOWS.len()) {
        Some(begin) if begin.eq_ignore_ascii_case(IN_WINDOWS) => image.get(IN_WINDOWS.len()..),
        _ if image.starts_with('\\') || Path::new(image).is_absolute() || image.contains(':') => None,
        _ => Some(image),
    };
    match below {
        Some(below) => below.split('\\').fold(windows.to_owned(), |path, part| path.join(part)),
        None => PathBuf::from(image.strip_prefix("\\??\\").unwrap_or(image)),
    }
}

/// Stops the driver and waits until it is unloaded. Returns whether it was loaded.
pub fn stop(system: &dyn System) -> Result<bool, Error> {
    if matches!(state(system)?, None | Some(ServiceState::Stopped)) {
        return Ok(false);
    }
    let sessions = sessions(system);
    match system.stop() {
        Ok(()) => {}
        Err(error) => match error.raw_os_error() {
            // The service is already stopped or stopping.
            Some(win32::ERROR_SERVICE_NOT_ACTIVE | win32::ERROR_SERVICE_CANNOT_ACCEPT_CTRL) => {}
            _ => return Err(service_error("stop", error)),
        },
    }
    for _ in 0..MAX_POLLS {
        if matches!(state(system)?, None | Some(ServiceState::Stopped)) {
            return Ok(true);
        }
        system.pause();
    }
    Err(DriverBusy { sessions }.into())
}

/// Starts the driver, unless it is already running.
pub fn start(system: &dyn System) -> Result<(), Error> {
    match system.start() {
        Err(error) if error.raw_os_error() != Some(win32::ERROR_SERVICE_ALREADY_RUNNING) => {
            Err(service_error("start", error))
        }
        _ => Ok(()),
    }
}

/// Returns the sessions that are bound to a handle. After a stop request the device cannot be opened, so this must be
/// called before.
fn sessions(system: &dyn System) -> Vec<String> {
    let sessions = connection::open(system).and_then(|connection| connection.sessions()).unwrap_or_default();
    sessions.iter().filter(|session| !session.detached).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_kernel_path_is_converted() {
        let windows = Path::new("W");
        let drivers: PathBuf = ["W", "System32", "drivers", "halprof.sys"].iter().collect();
        for (image, wanted) in [
            ("\\SystemRoot\\System32\\drivers\\halprof.sys", drivers.clone()),
            ("\\systemroot\\System32\\drivers\\halprof.sys", drivers.clone()),
            ("System32\\drivers\\halprof.sys", drivers),
            ("\\??\\D:\\build\\halprof.sys", PathBuf::from("D:\\build\\halprof.sys")),
            ("D:\\build\\halprof.sys", PathBuf::from("D:\\build\\halprof.sys")),
            ("\\Device\\Mup\\halprof.sys", PathBuf::from("\\Device\\Mup\\halprof.sys")),
        ] {
            assert_eq!(win32_path(image, windows), wanted, "{image}");
        }
    }
}
