//! The client that makes the exports.

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use xtask::run;

/// The native client, which reads recordings on any system.
pub struct Client {
    /// The program.
    pub program: PathBuf,
    /// The folder of the recordings and of the exports.
    pub folder: PathBuf,
}

impl Client {
    /// Runs the client in its folder and returns what it printed.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        run::output(Command::new(&self.program).args(words).current_dir(&self.folder))
    }
}
