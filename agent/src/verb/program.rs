//! The program of the service: a copy of this one, in a folder that only administrators can change.
//!
//! The service runs as SYSTEM. Were it this file, whoever can write to the folder in which the package was unpacked
//! could replace it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use halprof::protected::{self, Volume};

use super::AgentError;
use system::System;

/// Largest size of a program in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The program of the service.
pub struct Program {
    volume: Box<dyn Volume>,
    /// Where it is or will be.
    pub path: PathBuf,
    /// What is there; `None` if nothing is.
    before: Option<Vec<u8>>,
}

impl Program {
    /// Looks for the program.
    ///
    /// # Errors
    /// If it cannot be read, or others than administrators can change it.
    pub fn find(system: &dyn System, volume: Box<dyn Volume>) -> Result<Self, AgentError> {
        let path = system.agent_program().map_err(AgentError::NoFolder)?;
        let before = match protected::read(&*volume, &path, MAX_BYTES) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            read => Some(read.map_err(|cause| AgentError::program("read", &path, cause))?),
        };
        Ok(Self { volume, path, before })
    }

    /// Copies this program there, if it differs.
    ///
    /// # Errors
    /// If it cannot be copied. The one before is in place then.
    pub fn copy(&self, this: &Path) -> Result<(), AgentError> {
        let new = fs::read(this).map_err(|cause| AgentError::program("read", this, cause))?;
        if self.before.as_ref() == Some(&new) {
            return Ok(());
        }
        self.put(&new).map_err(|cause| AgentError::program("write", &self.path, cause))
    }

    /// Puts back what was there before.
    ///
    /// # Errors
    /// If that fails.
    pub fn restore(&self) -> io::Result<()> {
        match &self.before {
            Some(before) => self.put(before),
            None => self.remove().map(drop),
        }
    }

    /// Removes the program, what an installation left beside it, and the folder if it is empty then. Returns whether
    /// the program existed.
    ///
    /// # Errors
    /// If it cannot be removed, for example because it is this program.
    pub fn remove(&self) -> io::Result<bool> {
        self.remove_old();
        protected::remove(&*self.volume, &self.path)?;
        // Others may have files there.
        let _ = self.path.parent().map(|folder| self.volume.remove_folder(folder));
        Ok(self.before.is_some())
    }

    /// Removes a program that still ran when it was replaced. One that still runs is removed by a later command.
    pub fn remove_old(&self) {
        let _ = protected::remove(&*self.volume, &self.old());
    }

    /// Replaces the program. Windows does not replace one that runs, but renames it.
    fn put(&self, program: &[u8]) -> io::Result<()> {
        let Err(first) = protected::write(&*self.volume, &self.path, program) else { return Ok(()) };
        self.remove_old();
        if self.before.is_none() || self.volume.rename(&self.path, &self.old()).is_err() {
            return Err(first);
        }
        protected::write(&*self.volume, &self.path, program).or_else(|second| {
            self.volume.rename(&self.old(), &self.path)?;
            Err(second)
        })
    }

    fn old(&self) -> PathBuf {
        self.path.with_extension("exe.old")
    }
}
