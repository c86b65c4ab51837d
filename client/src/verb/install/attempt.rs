//! One installation of a file: its steps, and how they are undone if one fails.
//!
//! A copy of the old file is kept until the new driver has started and answered. A crash before that leaves the copy,
//! and the next installation falls back to it. With `--no-start` the copy is left on purpose.

use std::path::Path;

use halprof::{SERVICE, ServiceState};

use super::error::{InstallError, Undone};
use crate::machine::installed_driver::InstalledDriver;
use crate::machine::provider_security::{self, Restriction};
use crate::machine::service;
use system::System;
use system::connection;
use user_error::Error;
use user_error::exit::Exit;
use user_error::system_error::service_error;

/// One installation of a file.
pub struct Attempt<'a> {
    system: &'a dyn System,
    files: InstalledDriver<'a>,
    /// The file to install.
    file: Vec<u8>,
    /// State of the service before.
    before: Option<ServiceState>,
    /// The file that the service loads.
    current: Option<Vec<u8>>,
    /// The previous file, if the current one has not started since it replaced that one.
    fallback: Option<Vec<u8>>,
    /// The steps so far.
    done: Vec<Step>,
    /// What was done, as told to the user.
    report: Vec<String>,
}

/// A step that is undone after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The driver's events were restricted.
    Restrict,
    /// A copy of the current file was kept.
    Keep,
    /// The service was asked to stop.
    Stop,
    /// The file that the service loads is not the one to return to.
    Replace,
    /// The service was created.
    Create,
    /// The service was asked to start.
    Start,
}

impl<'a> Attempt<'a> {
    /// Prepares the installation of `file`. Nothing is changed yet.
    pub fn new(
        system: &'a dyn System,
        files: InstalledDriver<'a>,
        file: Vec<u8>,
        before: Option<ServiceState>,
    ) -> Result<Self, Error> {
        let (current, previous) = (files.current()?, files.previous()?);
        let runs = before == Some(ServiceState::Running) && current.is_some();
        let fallback = if runs { None } else { previous };
        Ok(Self { system, files, file, before, current, fallback, done: Vec::new(), report: Vec::new() })
    }

    /// Returns the file to install.
    pub fn file(&self) -> &[u8] {
        &self.file
    }

    /// Returns whether the running driver will be stopped.
    pub fn stops_the_driver(&self) -> bool {
        self.was_running() && !self.is_same()
    }

    /// Returns whether Windows will load a file that it has not loaded already.
    pub fn starts_something(&self, no_start: bool) -> bool {
        !self.is_same() || !(self.was_running() || no_start)
    }

    /// Installs the file that was read from `from`. Returns what was done, line by line.
    ///
    /// # Errors
    /// If a step fails. The steps before it are undone then, or the error says what could not be undone.
    pub fn run(mut self, from: &Path, no_start: bool) -> Result<Vec<String>, Error> {
        match self.install(from, no_start) {
            Ok(()) => Ok(self.report),
            Err(cause) => {
                let outcome = self.undo();
                Err(Undone { cause, outcome }.into())
            }
        }
    }

    fn has_done(&self, step: Step) -> bool {
        self.done.contains(&step)
    }

    fn was_running(&self) -> bool {
        self.before == Some(ServiceState::Running)
    }

    fn is_same(&self) -> bool {
        self.current.as_ref() == Some(&self.file)
    }

    /// Returns the file to return to after a failure.
    fn old(&self) -> Option<&Vec<u8>> {
        self.fallback.as_ref().or(self.current.as_ref())
    }

    fn install(&mut self, from: &Path, no_start: bool) -> Result<(), Error> {
        let (is_same, was_running) = (self.is_same(), self.was_running());
        self.restrict_events(is_same && was_running)?;
        if !is_same {
            self.replace_file(from)?;
        }
        if self.system.register().map_err(|error| service_error("create", error))? {
            self.done.push(Step::Create);
            self.report.push(format!("service {SERVICE} created"));
        }
        match (is_same && was_running, no_start) {
            (true, _) => self.report.push("already installed, with the same file, and running".to_owned()),
            (false, true) => {
                let same = is_same && self.before.is_some();
                let text = if same {
                    "already installed, with the same file"
                } else {
                    "installed; to start it: .\\client install"
                };
                self.report.push(text.to_owned());
                return Ok(()); // the kept copy stays until the driver is started
            }
            (false, false) => self.start()?,
        }
        for leftover in [self.files.remove_previous(), self.files.remove_temporary()] {
            if let Err(error) = leftover {
                self.report.push(format!("{}; `.\\client uninstall` removes it", error.in_one_line()));
            }
        }
        // A file that is still loaded is removed by a later command.
        let _ = self.files.remove_loaded();
        Ok(())
    }

    /// Restricts the driver's events. This is the first step, so that a failure does not disturb a running driver, and
    /// no driver is started before it.
    fn restrict_events(&mut self, driver_stays: bool) -> Result<(), Error> {
        let restriction = provider_security::restrict(self.system)?;
        if restriction == Restriction::Added {
            self.done.push(Step::Restrict);
        }
        self.report.extend(restriction.lines(driver_stays));
        Ok(())
    }

    /// Replaces the file that the service loads, and keeps a copy.
    fn replace_file(&mut self, from: &Path) -> Result<(), Error> {
        if let (Some(current), None) = (&self.current, &self.fallback) {
            self.files.keep(current)?;
            self.done.push(Step::Keep);
        }
        self.files.prepare(&self.file)?;
        self.done.push(Step::Stop);
        if service::stop(self.system)? {
            self.report.push(format!("service {SERVICE} stopped, to replace its driver"));
        }
        self.files.replace()?;
        self.done.push(Step::Replace);
        self.report.push(format!("copied {} to {}", from.display(), self.files.path().display()));
        Ok(())
    }

    /// Starts the driver and checks that it answers.
    fn start(&mut self) -> Result<(), Error> {
        if self.fallback.is_some() {
            self.done.push(Step::Replace);
        }
        self.done.push(Step::Start);
        service::start(self.system)?;
        self.report.push(format!("service {SERVICE} started"));
        match connection::open(self.system).map_err(Error::from) {
            Ok(_) => Ok(()),
            // The driver has answered, although this account may not use it.
            Err(error) if error.exit() == Exit::Denied => {
                self.report.push(format!("its protocol version was not checked: {}", error.in_one_line()));
                Ok(())
            }
            Err(error) => Err(InstallError::NoAnswer(error).into()),
        }
    }

    /// Undoes what was done, and returns the state after it.
    fn undo(&self) -> String {
        let undone = self.put_back();
        let state = service::state(self.system);
        let as_before = matches!(&state, Ok(state) if *state == self.before);
        match undone {
            Ok(())
                if as_before
                    && ![Step::Stop, Step::Replace, Step::Start].iter().any(|step| self.done.contains(step)) =>
            {
                "nothing was changed".to_owned()
            }
            Ok(()) if as_before => match (self.old(), self.before) {
                (None, _) => "the driver is not installed, as before".to_owned(),
                (Some(_), Some(ServiceState::Running)) => "the old driver is in place, and runs".to_owned(),
                (Some(_), _) => "the old driver is in place, and does not run, as before".to_owned(),
            },
            Ok(()) => format!("the old driver is in place; {}", service_text(&state)),
            Err(error) => format!(
                "the installation could not be undone: {}\n       {}; {}",
                error.in_one_line(),
                service_text(&state),
                self.files_text()
            ),
        }
    }

    /// Puts everything back. It goes on after a failure as far as that makes sense, and returns the first one.
    fn put_back(&self) -> Result<(), Error> {
        let stopped = if self.has_done(Step::Start) { service::stop(self.system).map(drop) } else { Ok(()) };
        let deleted = if self.has_done(Step::Create) { self.system.delete() } else { Ok(()) };
        let restored = match (self.has_done(Step::Replace), self.old()) {
            (true, Some(_)) => self.files.restore(),
            (true, None) => self.files.remove().map(drop),
            (false, _) => {
                // What cannot be removed is harmless: the next installation overwrites it.
                let _ = if self.has_done(Step::Keep) { self.files.remove_previous() } else { Ok(false) };
                Ok(())
            }
        };
        let _ = self.files.remove_temporary();
        let unrestricted =
            if self.has_done(Step::Restrict) { provider_security::remove(self.system).map(drop) } else { Ok(()) };
        stopped?;
        deleted.map_err(|error| service_error("delete", error))?;
        restored?;
        if self.was_running() && service::state(self.system)? == Some(ServiceState::Stopped) {
            service::start(self.system)?;
        }
        Ok(unrestricted?)
    }

    /// Returns which driver the service would load, and where the old one is.
    fn files_text(&self) -> String {
        let path = self.files.path().display();
        let current = match self.files.current() {
            Ok(Some(current)) if Some(&current) == self.old() => format!("{path} is the old driver"),
            Ok(Some(_)) => format!("{path} is the new driver"),
            Ok(None) => format!("{path} does not exist"),
            Err(error) => error.in_one_line(),
        };
        match self.files.previous() {
            Ok(Some(_)) => format!("{current},\n       {} the old one", self.files.previous_path().display()),
            _ => current,
        }
    }
}

fn service_text(state: &Result<Option<ServiceState>, Error>) -> String {
    match state {
        Ok(Some(state)) => format!("the service {SERVICE} is {}", state.text()),
        Ok(None) => format!("the service {SERVICE} does not exist"),
        Err(error) => error.in_one_line(),
    }
}
