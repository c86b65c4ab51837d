//! The service of the agent.

#![expect(unsafe_code, reason = "calls to Windows")]

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use halprof::windows::{DEBUG, SYSTEM_PROFILE};
use windows_service::service::{
    Service, ServiceAccess, ServiceAction, ServiceActionType, ServiceControl, ServiceControlAccept,
    ServiceErrorControl, ServiceExitCode, ServiceFailureActions, ServiceFailureResetPeriod, ServiceInfo,
    ServiceStartType, ServiceState, ServiceStatus, ServiceType,
};
use windows_service::service_control_handler::{self, ServiceControlHandlerResult, ServiceStatusHandle};
use windows_service::service_manager::{ServiceManager, ServiceManagerAccess};
use windows_service::{define_windows_service, service_dispatcher};
use windows_sys::Win32::Foundation::ERROR_SERVICE_DOES_NOT_EXIST;
use windows_sys::Win32::System::Services::{
    ChangeServiceConfig2W, ChangeServiceConfigW, SERVICE_CONFIG_REQUIRED_PRIVILEGES_INFO, SERVICE_NO_CHANGE,
    SERVICE_REQUIRED_PRIVILEGES_INFOW,
};

use super::convert::succeeded;
use crate::{AGENT, AgentService, ServiceBody};

const DISPLAY_NAME: &str = "halprof agent: continuous performance counters";

const DESCRIPTION: &str = "Counts hardware events and takes profiles all the time, at a bounded cost.";

/// Time after which Windows starts an agent again that has failed.
const RESTART: Duration = Duration::from_mins(1);

/// Time without a failure after which failures are forgotten.
const FORGET: Duration = Duration::from_hours(24);

/// The longest time that the end of the agent takes.
const END: Duration = Duration::from_secs(20);

/// What the service does, until Windows calls its main function.
static BODY: Mutex<Option<ServiceBody>> = Mutex::new(None);

define_windows_service!(service_entry, service_main);

fn error(error: windows_service::Error) -> io::Error {
    match error {
        windows_service::Error::Winapi(cause) => cause,
        other => io::Error::other(other),
    }
}

fn manager(access: ServiceManagerAccess) -> io::Result<ServiceManager> {
    ServiceManager::local_computer(None::<&str>, access).map_err(error)
}

/// Opens the service; `None` if it does not exist.
fn find(access: ServiceAccess) -> io::Result<Option<Service>> {
    match manager(ServiceManagerAccess::CONNECT)?.open_service(AGENT, access).map_err(error) {
        Ok(service) => Ok(Some(service)),
        Err(cause) if cause.raw_os_error() == Some(ERROR_SERVICE_DOES_NOT_EXIST.cast_signed()) => Ok(None),
        Err(cause) => Err(cause),
    }
}

/// Creates the service under LocalSystem, or corrects its settings. It starts with Windows, after services that others
/// wait for. Its token has two privileges. If they cannot be restricted, a new service is deleted.
pub fn register(program: &Path, arguments: Vec<OsString>) -> io::Result<()> {
    let info = ServiceInfo {
        name: AGENT.into(),
        display_name: DISPLAY_NAME.into(),
        service_type: ServiceType::OWN_PROCESS,
        start_type: ServiceStartType::AutoStart,
        error_control: ServiceErrorControl::Normal,
        executable_path: program.to_owned(),
        launch_arguments: arguments,
        // None on the driver, which could not be stopped then.
        dependencies: Vec::new(),
        account_name: None,
        account_password: None,
    };
    let access = ServiceAccess::CHANGE_CONFIG | ServiceAccess::START | ServiceAccess::DELETE;
    if let Some(service) = find(access)? {
        service.change_config(&info).map_err(error)?;
        return configure(&service);
    }
    let manager = manager(ServiceManagerAccess::CONNECT | ServiceManagerAccess::CREATE_SERVICE)?;
    let service = manager.create_service(&info, access).map_err(error)?;
    configure(&service).inspect_err(|_| {
        // The first error is reported.
        let _ = service.delete();
    })
}

fn configure(service: &Service) -> io::Result<()> {
    restrict_privileges(service)?;
    let restart = ServiceAction { action_type: ServiceActionType::Restart, delay: RESTART };
    let actions = ServiceFailureActions {
        reset_period: ServiceFailureResetPeriod::After(FORGET),
        reboot_msg: None,
        command: None,
        actions: Some(vec![restart.clone(), restart.clone(), restart]),
    };
    service.update_failure_actions(actions).map_err(error)?;
    // Also if it ends with an error, as when a folder of the configuration is missing.
    service.set_failure_actions_on_non_crash_failures(true).map_err(error)?;
    service.set_delayed_auto_start(true).map_err(error)?;
    service.set_description(DESCRIPTION).map_err(error)
}

/// Removes every privilege from the token of the service, except for those to profile the system and to see addresses
/// of the kernel and modules of other processes (docs/security.md says why the second one stays).
fn restrict_privileges(service: &Service) -> io::Result<()> {
    // A list of texts, which ends with an empty one.
    let text = [SYSTEM_PROFILE, DEBUG, ""].join("\0");
    let mut privileges: Vec<u16> = text.encode_utf16().chain([0]).collect();
    let info = SERVICE_REQUIRED_PRIVILEGES_INFOW { pmszRequiredPrivileges: privileges.as_mut_ptr() };
    // SAFETY: the handle is open with the required access, and the structure and its text outlive the call.
    succeeded(unsafe {
        ChangeServiceConfig2W(service.raw_handle(), SERVICE_CONFIG_REQUIRED_PRIVILEGES_INFO, (&raw const info).cast())
    })
}

/// Returns the service; `None` if it does not exist.
pub fn query() -> io::Result<Option<AgentService>> {
    let Some(service) = find(ServiceAccess::QUERY_CONFIG | ServiceAccess::QUERY_STATUS)? else { return Ok(None) };
    let command = service.query_config().map_err(error)?.executable_path.into_os_string();
    let runs = service.query_status().map_err(error)?.current_state == ServiceState::Running;
    Ok(Some(AgentService { command, runs }))
}

/// Sets the command line of the service, and nothing else.
pub fn set_command(command: &OsStr) -> io::Result<()> {
    let Some(service) = find(ServiceAccess::CHANGE_CONFIG)? else { return Ok(()) };
    let command: Vec<u16> = command.encode_wide().chain([0]).collect();
    // SAFETY: the handle is open with the required access, the command line has a terminating zero, and null pointers
    // leave settings unchanged.
    succeeded(unsafe {
        ChangeServiceConfigW(
            service.raw_handle(),
            SERVICE_NO_CHANGE,
            SERVICE_NO_CHANGE,
            SERVICE_NO_CHANGE,
            command.as_ptr(),
            null(),
            null_mut(),
            null(),
            null(),
            null(),
            null(),
        )
    })
}

/// Starts the service, if it exists and does not run.
pub fn start() -> io::Result<()> {
    let Some(service) = find(ServiceAccess::START | ServiceAccess::QUERY_STATUS)? else { return Ok(()) };
    if service.query_status().map_err(error)?.current_state == ServiceState::Stopped {
        service.start::<OsString>(&[]).map_err(error)?;
    }
    Ok(())
}

/// Asks the service to stop. Returns whether it still runs.
pub fn stop() -> io::Result<bool> {
    let Some(service) = find(ServiceAccess::STOP | ServiceAccess::QUERY_STATUS)? else { return Ok(false) };
    let status = service.query_status().map_err(error)?;
    if status.current_state == ServiceState::Running {
        service.stop().map_err(error)?;
    }
    Ok(status.current_state != ServiceState::Stopped)
}

/// Deletes the service. Returns whether it existed.
pub fn delete() -> io::Result<bool> {
    let Some(service) = find(ServiceAccess::DELETE)? else { return Ok(false) };
    service.delete().map_err(error)?;
    Ok(true)
}

/// Runs the body as the service, until Windows stops it.
pub fn serve(body: ServiceBody) -> io::Result<()> {
    *BODY.lock().unwrap_or_else(PoisonError::into_inner) = Some(body);
    service_dispatcher::start(AGENT, service_entry).map_err(error)
}

/// The main function of the service. Windows shows its exit code; what went wrong is in the agent's log.
fn service_main(_arguments: Vec<OsString>) {
    let Some(body) = BODY.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
    let is_over = Arc::new(AtomicBool::new(false));
    let status = Arc::new(OnceLock::<ServiceStatusHandle>::new());
    let (over, ending) = (Arc::clone(&is_over), Arc::clone(&status));
    let registered = service_control_handler::register(AGENT, move |control| match control {
        ServiceControl::Stop | ServiceControl::Shutdown => {
            over.store(true, Ordering::Relaxed);
            if let Some(status) = ending.get() {
                set(*status, ServiceState::StopPending, ServiceExitCode::NO_ERROR);
            }
            ServiceControlHandlerResult::NoError
        }
        ServiceControl::Interrogate => ServiceControlHandlerResult::NoError,
        _ => ServiceControlHandlerResult::NotImplemented,
    });
    let Ok(registered) = registered else { return };
    let status = *status.get_or_init(|| registered);
    set(status, ServiceState::Running, ServiceExitCode::NO_ERROR);
    let exit_code = match body(&|| is_over.load(Ordering::Relaxed)) {
        0 => ServiceExitCode::NO_ERROR,
        code => ServiceExitCode::ServiceSpecific(code.unsigned_abs()),
    };
    set(status, ServiceState::Stopped, exit_code);
}

/// Reports the state of the service. If Windows does not take it, it ends the service after the time of the hint.
fn set(status: ServiceStatusHandle, current_state: ServiceState, exit_code: ServiceExitCode) {
    let controls_accepted = match current_state {
        ServiceState::Running => ServiceControlAccept::STOP | ServiceControlAccept::SHUTDOWN,
        _ => ServiceControlAccept::empty(),
    };
    let _ = status.set_service_status(ServiceStatus {
        service_type: ServiceType::OWN_PROCESS,
        current_state,
        controls_accepted,
        exit_code,
        checkpoint: 0,
        wait_hint: END,
        process_id: None,
    });
}
