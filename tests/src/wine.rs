//! Wine: a Windows environment with its own disk and registry.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};
use wine_prefix::Prefix;

use crate::program::ProgramOutput;
use crate::{log, start};

/// Returns the folder with halprof.sys, client.exe and the files of the lab, which `cargo xtask` passes in the
/// environment.
///
/// # Errors
/// The variable is not set.
pub fn artifacts() -> Result<PathBuf> {
    path_from("HALPROF_ARTIFACTS")
}

/// Returns the folder of the package, which `cargo xtask` passes in the environment.
///
/// # Errors
/// The variable is not set.
pub fn package() -> Result<PathBuf> {
    path_from("HALPROF_PACKAGE")
}

fn path_from(variable: &str) -> Result<PathBuf> {
    let path = env::var_os(variable);
    path.map(PathBuf::from)
        .with_context(|| format!("{variable} is not set: run `cargo xtask test` or `cargo xtask demo`"))
}

/// The lines of the drivers' output that a failed test shows.
const SHOWN_LINES: usize = 30;

/// A running Wine. Dropping it ends all its processes.
#[derive(Debug)]
pub struct Wine {
    prefix: Prefix,
    /// Another run would end this one's processes.
    _reserved: File,
}

impl Wine {
    /// Boots the prefix, after ending everything that an earlier boot left running.
    ///
    /// # Errors
    /// Wine or the prefix is missing, or another run uses the prefix.
    pub fn boot() -> Result<Self> {
        let prefix = Prefix::new(&path_from("HALPROF_PREFIX")?).with_driver_output();
        let reserved = prefix.reserve().with_context(|| format!("cannot use {}", prefix.folder().display()))?;
        let wine = Self { prefix, _reserved: reserved };
        wine.prefix.stop().context("cannot stop Wine")?;
        let log = File::create(wine.log()).with_context(|| format!("cannot write {}", wine.log().display()))?;
        let output = || log.try_clone().context("cannot share the log");
        let ran = wine.prefix.start_server(&log);
        ensure!(ran.context("cannot start wineserver")?.success(), "wineserver failed: {}", wine.log().display());
        let mut first = wine.prefix.wine();
        let ran = first.args(["cmd", "/c", "ver"]).stdin(Stdio::null()).stdout(output()?).stderr(output()?).status();
        ensure!(ran.context("cannot start wine")?.success(), "wine failed: {}", wine.log().display());
        Ok(wine)
    }

    fn log(&self) -> PathBuf {
        self.prefix.folder().join("wine.log")
    }

    /// Returns the output of the drivers and of other services.
    #[must_use]
    pub fn log_text(&self) -> String {
        fs::read(self.log()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Returns the path of a file on drive C:. `path` is relative to the root and uses `/`.
    #[must_use]
    pub fn drive_c(&self, path: &str) -> PathBuf {
        self.prefix.drive_c(path)
    }

    /// Copies a file to drive C:.
    ///
    /// # Errors
    /// The file cannot be copied.
    pub fn copy(&self, from: &Path, to: &str) -> Result<()> {
        let to = self.drive_c(to);
        let folder = to.parent().context("a file in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::copy(from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        Ok(())
    }

    /// Returns a command that runs a Windows program, given by its path on Linux or its name on Windows.
    #[must_use]
    pub fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.prefix.wine();
        command.arg(program).args(arguments);
        command
    }

    /// Runs a Windows program and waits until it exits.
    ///
    /// # Errors
    /// The program cannot be started or does not end. An exit code is not an error.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<ProgramOutput> {
        start::run(&line(program, arguments), || Ok(self.program(program, arguments)))
    }
}

/// Returns a command line with the name of the program alone.
pub fn line(program: &str, arguments: &[&str]) -> String {
    let name = Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
    format!("{name} {}", arguments.join(" "))
}

impl Drop for Wine {
    fn drop(&mut self) {
        if thread::panicking() {
            let text = self.log_text();
            let lines: Vec<&str> = text.lines().collect();
            let last = lines.get(lines.len().saturating_sub(SHOWN_LINES)..).unwrap_or_default().join("\n");
            eprintln!("the bench's last second:\n{}the last output of its drivers:\n{last}", log::last_second());
        }
        // An error has no consequence: the next boot ends what is left.
        let _ = self.prefix.stop();
    }
}
