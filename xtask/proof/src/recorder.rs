//! What a stage runs, and what becomes of the output.

use std::{path::PathBuf, process::Command, time::Duration};

use anyhow::{Result, ensure};
use xtask::{files, run, workspace::Workspace};

use crate::figures::{self, Figures};

/// Variables that decide what a command checks. Others have paths of this machine.
const VARIABLES: [&str; 4] = ["LOOM_MAX_PREEMPTIONS", "MIRIFLAGS", "PROPTEST_CASES", "RUSTFLAGS"];

/// What a stage notes.
pub struct Recorder<'a> {
    pub workspace: &'a Workspace,
    /// The folder of the logs.
    pub logs: PathBuf,
    pub name: &'static str,
    /// Time limit of a command.
    pub limit: Duration,
    pub commands: Vec<String>,
    pub figures: Figures,
}

impl Recorder<'_> {
    /// Runs a command, and notes it and the numbers in its output.
    ///
    /// # Errors
    /// It failed, or its output has no such numbers: then it has checked nothing.
    pub fn run(&mut self, command: &mut Command, read: fn(&str) -> Vec<(&'static str, u64)>) -> Result<()> {
        let shown = shown(command);
        self.run_as(command, shown, read)
    }

    /// Runs `cargo xtask` with these words, as [`run`](Self::run) runs a command.
    pub fn xtask(&mut self, words: &[&str], read: fn(&str) -> Vec<(&'static str, u64)>) -> Result<()> {
        let mut command = self.workspace.cargo("xtask");
        command.args(words);
        self.run(&mut command, read)
    }

    fn run_as(
        &mut self,
        command: &mut Command,
        shown: String,
        read: fn(&str) -> Vec<(&'static str, u64)>,
    ) -> Result<()> {
        self.commands.push(shown);
        let log = self.logs.join(format!("{}-{}.log", self.name.replace(' ', "-"), self.commands.len()));
        run::logged(self.name, command, &log, self.limit)?;
        let found = read(&String::from_utf8_lossy(&files::read(&log)?));
        ensure!(found.iter().any(|(_, number)| *number > 0), "it checked nothing: see {}", log.display());
        figures::add(&mut self.figures, found);
        Ok(())
    }
}

/// Returns a command line with the variables that decide what it checks.
pub fn shown(command: &Command) -> String {
    let set = command.get_envs().filter_map(|(name, value)| Some((name.to_str()?, value?.to_str()?)));
    let set = set.filter(|(name, _)| VARIABLES.contains(name)).map(|(name, value)| format!("{name}='{value}'"));
    set.chain([run::line(command)]).collect::<Vec<_>>().join(" ")
}
