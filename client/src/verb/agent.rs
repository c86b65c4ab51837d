//! `agent`: counts and samples all the time.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use agent::config::{Config, ConfigError};
use thiserror::Error as ThisError;

use super::context::Context;
use crate::agent::{Agent, Log, NewSystem, Outputs};
use crate::cli::{AgentArgs, AgentRunArgs, AgentVerb};
use crate::error::{Error, UserError};
use crate::exit::Exit;
use crate::system::{AGENT, System};

/// A configuration with every option, and its comments.
const EXAMPLE: &str = include_str!("agent/agent.toml");

/// Number of pauses within which the service should have stopped: about ten seconds.
const PAUSES: u32 = 200;

/// Why the service of the agent cannot be changed.
#[derive(Debug, ThisError)]
pub enum AgentError {
    /// The service control manager failed.
    #[error("cannot {action} the service {AGENT}")]
    Service {
        /// What was tried.
        action: &'static str,
        /// Error of Windows.
        #[source]
        cause: io::Error,
    },
    /// The service does not stop.
    #[error("the service {AGENT} does not stop")]
    Runs,
}

impl UserError for AgentError {
    fn exit(&self) -> Exit {
        match self {
            Self::Service { cause, .. } if halprof::OpenError::is_denied(cause) => Exit::Denied,
            Self::Service { .. } => Exit::Failure,
            Self::Runs => Exit::Busy,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Service { cause, .. } if halprof::OpenError::is_denied(cause) => {
                Some("an elevated prompt (Run as administrator)".to_owned())
            }
            Self::Service { .. } => None,
            Self::Runs => Some(format!("sc query {AGENT}   (shows its state), then repeat the command")),
        }
    }
}

impl UserError for ConfigError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn remedy(&self) -> Option<String> {
        Some("client agent example   (prints a configuration with every option)".to_owned())
    }
}

pub fn run(verb: &AgentVerb, context: &mut Context) -> Result<i32, Error> {
    match verb {
        AgentVerb::Run(args) if args.service => return serve(&args.config.config, context),
        AgentVerb::Run(args) => run_here(args, context)?,
        AgentVerb::Install(args) => install(args, context)?,
        AgentVerb::Uninstall => uninstall(context)?,
        AgentVerb::Check(args) => {
            check(&args.config)?;
            context.say(&format!("{} is in order", args.config.display()))?;
        }
        AgentVerb::Example => context.say(EXAMPLE.trim_end())?,
    }
    Ok(Exit::Done.code())
}

/// Checks a configuration, as far as no driver is needed.
fn check(config: &Path) -> Result<(), Error> {
    crate::agent::check(&Config::read(config)?)
}

/// Runs until Ctrl-C.
fn run_here(args: &AgentRunArgs, context: &mut Context) -> Result<(), Error> {
    let config = Config::read(&args.config.config)?;
    let system = context.system()?;
    system.note_interrupts()?;
    let mut note = |text: &str| {
        // A closed console is no reason to end.
        let _ = context.warn(&format!("[ agent: {text} ]"));
    };
    publish(&config, system, crate::this_system, &|| system.interrupted(), &mut note)
}

/// Runs as the service that has started this process.
fn serve(config: &Path, context: &Context) -> Result<i32, Error> {
    let config = config.to_owned();
    let body = move |is_over: &dyn Fn() -> bool| {
        let log = Log::new(config.with_extension("log"));
        // A full disk must not end the agent.
        let mut note = |text: &str| drop(log.write(text));
        let ended = Config::read(&config).map_err(Error::from).and_then(|config| match crate::this_system() {
            Some(system) => publish(&config, &*system, crate::this_system, is_over, &mut note),
            None => Ok(()),
        });
        match ended {
            Ok(()) => Exit::Done.code(),
            Err(error) => {
                note(&format!("error: {}", error.in_one_line()));
                error.exit().code()
            }
        }
    };
    let system = context.system()?;
    system.serve_agent(Box::new(body)).map_err(|cause| AgentError::Service { action: "run", cause })?;
    Ok(Exit::Done.code())
}

/// Counts, samples and publishes until the end.
fn publish(
    config: &Config,
    system: &dyn System,
    new_system: NewSystem,
    is_over: &dyn Fn() -> bool,
    note: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let outputs = Outputs::start(config, new_system)?;
    for line in outputs.describe(config) {
        note(&line);
    }
    let ended = Agent { config, system, outputs: &outputs, is_over, note }.run();
    outputs.stop();
    ended
}

/// Creates and starts the service.
fn install(args: &AgentArgs, context: &mut Context) -> Result<(), Error> {
    check(&args.config)?;
    let system = context.system()?;
    let config = absolute(&args.config)?;
    let words = ["agent", "run", "--service", "--config"].map(OsString::from);
    let arguments = words.into_iter().chain([config.clone().into_os_string()]).collect();
    stop(system)?;
    system.register_agent(arguments).map_err(|cause| AgentError::Service { action: "create", cause })?;
    system.start_agent().map_err(|cause| AgentError::Service { action: "start", cause })?;
    context.say(&format!("service {AGENT} started; its log is {}", config.with_extension("log").display()))
}

/// Returns the path for a service, which begins in another folder.
fn absolute(path: &Path) -> Result<PathBuf, AgentError> {
    std::path::absolute(path).map_err(|cause| AgentError::Service { action: "find the configuration of", cause })
}

/// Stops and deletes the service. Repeating it has the same result.
fn uninstall(context: &mut Context) -> Result<(), Error> {
    let system = context.system()?;
    stop(system)?;
    let was_there = system.delete_agent().map_err(|cause| AgentError::Service { action: "delete", cause })?;
    context.say(&if was_there { format!("service {AGENT} deleted") } else { "not installed; nothing to do".to_owned() })
}

/// Stops the service, and waits for its end.
fn stop(system: &dyn System) -> Result<(), AgentError> {
    for _ in 0..PAUSES {
        if !system.stop_agent().map_err(|cause| AgentError::Service { action: "stop", cause })? {
            return Ok(());
        }
        system.pause();
    }
    Err(AgentError::Runs)
}
