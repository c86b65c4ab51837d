//! `status`: shows whether the driver is running, and its sessions.

use halprof::ServiceState;
use halprof::sessions::RunningSession;
use protocol::PROTOCOL_VERSION;
use serde::Serialize;

use crate::cli::Json;
use crate::machine::service;
use counts::totals::Totals;
use system::connection;
use terminal::context::Context;
use terminal::document::Document;
use terminal::format::properties;
use user_error::Error;
use user_error::exit::Exit;

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    service: &'static str,
    client_version: &'static str,
    client_protocol: u32,
    driver_version: Option<String>,
    driver_protocol: Option<u32>,
    sessions: Vec<RunningSession>,
    sampling: Option<Totals>,
}

impl Document for Status {
    const SCHEMA: &'static str = "halprof.status/1";
}

pub fn run(args: &Json, context: &mut Context) -> Result<Exit, Error> {
    let state = service::state(context.system()?)?;
    let mut status = Status {
        service: state.map_or("not_installed", ServiceState::text),
        client_version: env!("CARGO_PKG_VERSION"),
        client_protocol: PROTOCOL_VERSION,
        driver_version: None,
        driver_protocol: None,
        sessions: Vec::new(),
        sampling: None,
    };
    let exit = match state {
        None => Exit::NotInstalled,
        Some(ServiceState::Running) => {
            let connection = connection::open(context.system()?)?;
            status.driver_version = Some(connection.driver_version());
            // A driver of another version is refused when it is opened.
            status.driver_protocol = Some(PROTOCOL_VERSION);
            status.sessions = connection.sessions()?;
            status.sampling = Some(Totals::from(&connection.info()?));
            Exit::Done
        }
        Some(_) => Exit::NotStarted,
    };
    if args.json {
        context.json(&status)?;
    } else {
        context.say(&text(&status, exit))?;
    }
    Ok(exit)
}

fn text(status: &Status, exit: Exit) -> String {
    match exit {
        Exit::NotInstalled => {
            return "The driver is not installed. To install and start it: .\\client install".to_owned();
        }
        Exit::NotStarted => {
            return format!("The driver is installed and {}. To start it: .\\client install", status.service);
        }
        _ => {}
    }
    let mut rows = vec![
        ("Service", status.service.to_owned()),
        ("Driver", status.driver_version.clone().unwrap_or_default()),
        ("Protocol", PROTOCOL_VERSION.to_string()),
        ("Sessions", status.sessions.len().to_string()),
    ];
    rows.extend(status.sessions.iter().map(|session| ("", session.to_string())));
    rows.extend(status.sampling.iter().flat_map(Totals::rows));
    properties(&rows)
}
