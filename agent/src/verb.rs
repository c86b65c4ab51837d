//! What the command line asks for.

mod program;
mod protection;
mod warnings;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use agent::config::{Config, ConfigError};
use halprof::OpenError;
use halprof::protected::Unprotected;
use thiserror::Error as ThisError;

use self::program::Program;
use self::protection::exposed;
use crate::log::Log;
use crate::outputs::{NewSystem, Outputs};
use crate::run::Agent;
use crate::{counting, profiling};
use agent_arguments::{AgentArgs, AgentRunArgs, AgentVerb};
use system::{AGENT, AgentService, System, VolumeUser};
use terminal::context::Context;
use user_error::exit::Exit;
use user_error::{Error, UserError};

/// A configuration with every option, and its comments.
const EXAMPLE: &str = include_str!("verb/agent.toml");

/// Number of pauses within which the service should have stopped: about ten seconds.
const PAUSES: u32 = 200;

/// Why the service of the agent cannot be changed.
#[derive(Debug, ThisError)]
pub enum AgentError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
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
    /// The service does not exist.
    #[error("the service {AGENT} is not installed")]
    NotInstalled,
    /// Windows does not say where programs are.
    #[error("cannot find the folder for the program of the service {AGENT}")]
    NoFolder(#[source] io::Error),
    /// The program of the service cannot be changed.
    #[error("cannot {action} {}", path.display())]
    Program {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        cause: io::Error,
    },
    /// Others than administrators can change what the service uses.
    #[error("the service {AGENT} runs as SYSTEM, and must not use {}", path.display())]
    Exposed {
        /// The file or folder of the configuration.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The service would not find imported events.
    #[error("the service {AGENT} will not find {names}")]
    OwnImport {
        /// The events and metrics.
        names: String,
        /// Why.
        #[source]
        cause: OwnImport,
    },
    /// An installation failed, and its steps were not undone.
    #[error("{cause}; the service that was there before could not be put back: {undo}")]
    NotUndone {
        /// Why it failed.
        cause: String,
        /// Why it was not undone.
        undo: String,
    },
}

/// Why the service does not find events.
#[derive(Debug, ThisError)]
#[error("they were imported for this account only, and the service runs under another one")]
pub struct OwnImport;

impl AgentError {
    fn program(action: &'static str, path: &Path, cause: io::Error) -> Self {
        Self::Program { action, path: path.to_owned(), cause }
    }
}

impl UserError for AgentError {
    fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Exposed { .. } | Self::OwnImport { .. } => Exit::Usage,
            Self::Service { cause, .. } | Self::Program { cause, .. } if is_denied(cause) => Exit::Denied,
            Self::Service { .. } | Self::NoFolder(_) | Self::Program { .. } | Self::NotUndone { .. } => Exit::Failure,
            Self::Runs => Exit::Busy,
            Self::NotInstalled => Exit::NotInstalled,
        }
    }

    fn remedy(&self) -> Option<String> {
        match self {
            Self::Config(_) => Some(".\\client agent example   (prints a configuration with every option)".to_owned()),
            Self::Program { cause, .. } | Self::Exposed { cause, .. } if Unprotected::of(cause).is_some() => {
                Unprotected::of(cause).map(protection::remedy)
            }
            Self::Service { cause, .. } | Self::Program { cause, .. } if is_denied(cause) => {
                Some("an elevated prompt (Run as administrator)".to_owned())
            }
            Self::OwnImport { .. } => {
                Some(".\\client events import DIR   (from an elevated prompt: for the whole machine)".to_owned())
            }
            Self::NotUndone { .. } => {
                Some(".\\client agent uninstall, then: .\\client agent install --config FILE".to_owned())
            }
            Self::Service { .. } | Self::NoFolder(_) | Self::Program { .. } | Self::Exposed { .. } => None,
            Self::NotInstalled => Some(".\\client agent install --config FILE".to_owned()),
            Self::Runs => Some(format!("sc.exe query {AGENT}   (shows its state), then repeat the command")),
        }
    }
}

pub fn run(verb: &AgentVerb, context: &mut Context) -> Result<i32, Error> {
    match verb {
        AgentVerb::Run(args) if args.service => return serve(&args.config.config, context),
        AgentVerb::Run(args) => run_here(args, context)?,
        AgentVerb::Install(args) => install(args, context)?,
        AgentVerb::Uninstall => uninstall(context)?,
        AgentVerb::Start => start(context)?,
        AgentVerb::Stop => stop_service(context)?,
        AgentVerb::Status => return status(context),
        AgentVerb::Check(args) => {
            let config = check(&args.config)?;
            protection::check_imports(&config, &context.cache)?;
            let imported = context.cache.load()?;
            for warning in warnings::of(&config, &counting::event_lists(&config)?, imported.as_ref()) {
                context.warn(&format!("warning: {warning}"))?;
            }
            context.say(&format!("{} is in order", args.config.display()))?;
        }
        AgentVerb::Example => context.say(EXAMPLE.trim_end())?,
    }
    Ok(Exit::Done.code())
}

fn is_denied(cause: &io::Error) -> bool {
    OpenError::is_denied(cause) || cause.kind() == io::ErrorKind::PermissionDenied
}

fn read(config: &Path) -> Result<Config, AgentError> {
    Ok(Config::read(config)?)
}

/// Checks a configuration and its events, as far as no driver is needed.
fn check(config: &Path) -> Result<Config, Error> {
    let config = read(config)?;
    check_events(&config)?;
    Ok(config)
}

/// Checks the events of a configuration.
pub fn check_events(config: &Config) -> Result<(), Error> {
    counting::event_lists(config)?;
    config.profiles.as_ref().map(profiling::Profiling::new).transpose()?;
    Ok(())
}

/// Runs until Ctrl-C.
fn run_here(args: &AgentRunArgs, context: &mut Context) -> Result<(), Error> {
    let config = read(&args.config.config)?;
    let system = context.system()?;
    system.note_interrupts()?;
    let mut note = |text: &str| {
        // A closed console is no reason to end.
        let _ = context.warn(&format!("[ agent: {text} ]"));
    };
    publish(&config, system, system::this_system, &|| system.interrupted(), &mut note)
}

/// Runs as the service that has started this process.
fn serve(config: &Path, context: &Context) -> Result<i32, Error> {
    let config = config.to_owned();
    let body = move |is_over: &dyn Fn() -> bool| {
        let Some(system) = system::this_system() else { return Exit::Done.code() };
        // The log is beside the configuration. Where others can change files, not even that is written.
        let volume = system.volume(VolumeUser::Service).map_err(|cause| exposed(&config, cause));
        let volume = volume.and_then(|volume| protection::check_config(&*volume, &config).map(|()| volume));
        let volume = match volume {
            Ok(volume) => volume,
            Err(error) => return error.exit().code(),
        };
        let log = Log::new(config.with_extension("log"));
        // A full disk must not end the agent.
        let mut note = |text: &str| drop(log.write(text));
        let ended = read(&config).map_err(Error::from).and_then(|config| {
            protection::prepare(&*volume, &config)?;
            publish(&config, &*system, system::this_system, is_over, &mut note)
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

/// Copies the program, and creates and starts the service. Everything that can be checked is checked before the running
/// service is stopped. After that, a failure puts the service back that was there before.
fn install(args: &AgentArgs, context: &mut Context) -> Result<(), Error> {
    let config = absolute(&args.config)?;
    let checked = check(&args.config)?;
    protection::check_imports(&checked, &context.cache)?;
    let system = context.system()?;
    let volume = system.volume(VolumeUser::Administrator).map_err(|cause| exposed(&config, cause))?;
    protection::check_config(&*volume, &config)?;
    protection::prepare(&*volume, &checked)?;
    let before = service(system)?;
    let program = Program::find(system, volume)?;
    let installation = Installation { system, program, before };
    installation.run(&config)?;
    let (program, log) = (installation.program.path.display(), config.with_extension("log"));
    context.say(&format!("service {AGENT} started: {program}; its log is {}", log.display()))
}

/// The last step of an installation that was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Stop,
    Register,
    Start,
}

/// One installation.
struct Installation<'a> {
    system: &'a dyn System,
    program: Program,
    /// The service before.
    before: Option<AgentService>,
}

impl Installation<'_> {
    fn run(&self, config: &Path) -> Result<(), Error> {
        let mut step = Step::Stop;
        let Err(cause) = self.install(config, &mut step) else {
            self.program.remove_old();
            return Ok(());
        };
        match self.put_back(step) {
            Ok(()) => Err(cause),
            Err(undo) => Err(AgentError::NotUndone { cause: cause.in_one_line(), undo: undo.in_one_line() }.into()),
        }
    }

    fn install(&self, config: &Path, step: &mut Step) -> Result<(), Error> {
        let words = ["run", "--service", "--config"].map(OsString::from);
        let arguments = words.into_iter().chain([config.as_os_str().to_owned()]).collect();
        let this = self.system.this_program().map_err(|cause| AgentError::Service { action: "copy", cause })?;
        stop(self.system)?;
        self.program.copy(&this)?;
        *step = Step::Register;
        let registered = self.system.register_agent(&self.program.path, arguments);
        registered.map_err(|cause| AgentError::Service { action: "create", cause })?;
        *step = Step::Start;
        Ok(begin(self.system)?)
    }

    /// Undoes the steps. It goes on after a failure, and returns the first one.
    fn put_back(&self, step: Step) -> Result<(), Error> {
        let service = |action| move |cause| Error::from(AgentError::Service { action, cause });
        if step == Step::Start {
            stop(self.system)?;
        }
        if step == Step::Stop {
            return self.start_again();
        }
        let registered = match &self.before {
            Some(before) => self.system.set_agent_command(&before.command).map_err(service("change")),
            None => self.system.delete_agent().map(drop).map_err(service("delete")),
        };
        let restored = self.program.restore();
        registered?;
        restored.map_err(|cause| AgentError::program("restore", &self.program.path, cause))?;
        self.start_again()
    }

    fn start_again(&self) -> Result<(), Error> {
        let still_runs = || matches!(self.system.agent(), Ok(Some(now)) if now.runs);
        if self.before.as_ref().is_some_and(|before| before.runs) && !still_runs() {
            begin(self.system)?;
        }
        Ok(())
    }
}

/// Returns the path for a service, which begins in another folder.
fn absolute(path: &Path) -> Result<PathBuf, AgentError> {
    std::path::absolute(path).map_err(|cause| AgentError::Service { action: "find the configuration of", cause })
}

/// Stops and deletes the service, and removes its program. Repeating it has the same result.
fn uninstall(context: &mut Context) -> Result<(), Error> {
    let system = context.system()?;
    stop(system)?;
    let was_there = system.delete_agent().map_err(|cause| AgentError::Service { action: "delete", cause })?;
    if was_there {
        context.say(&format!("service {AGENT} deleted"))?;
    }
    let volume = system.volume(VolumeUser::Administrator).map_err(AgentError::NoFolder)?;
    let program = Program::find(system, volume)?;
    match program.remove() {
        Ok(true) => context.say(&format!("removed {}", program.path.display())),
        Ok(false) if was_there => Ok(()),
        Ok(false) => context.say("not installed; nothing to do"),
        // For example because it is this program.
        Err(cause) => context.say(&format!("{} stays: {cause}; delete it yourself", program.path.display())),
    }
}

/// Returns the service; `None` if it does not exist.
fn service(system: &dyn System) -> Result<Option<AgentService>, AgentError> {
    system.agent().map_err(|cause| AgentError::Service { action: "query", cause })
}

/// Starts the service, if it does not run.
fn begin(system: &dyn System) -> Result<(), AgentError> {
    system.start_agent().map_err(|cause| AgentError::Service { action: "start", cause })
}

/// Starts the service, and tells it. Repeating it has the same result.
fn start(context: &mut Context) -> Result<(), Error> {
    let system = context.system()?;
    if service(system)?.ok_or(AgentError::NotInstalled)?.runs {
        return context.say(&format!("service {AGENT} runs already"));
    }
    begin(system)?;
    context.say(&format!("service {AGENT} started"))
}

/// Stops the service, and tells it. Repeating it has the same result.
fn stop_service(context: &mut Context) -> Result<(), Error> {
    let system = context.system()?;
    if !service(system)?.ok_or(AgentError::NotInstalled)?.runs {
        return context.say(&format!("service {AGENT} does not run; nothing to do"));
    }
    stop(system)?;
    context.say(&format!("service {AGENT} stopped; it starts again with Windows"))
}

/// Shows the service. Its state is the exit code, as that of the driver is.
fn status(context: &mut Context) -> Result<i32, Error> {
    let AgentService { command, runs } = service(context.system()?)?.ok_or(AgentError::NotInstalled)?;
    let (said, exit) = if runs { ("runs", Exit::Done) } else { ("does not run", Exit::NotStarted) };
    context.say(&format!("service {AGENT} {said}: {}", command.display()))?;
    Ok(exit.code())
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

#[cfg(test)]
mod tests;
