//! Wine: a Windows with a disk and a registry of its own, for as long as it lives.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::program::Ran;

const WINE: &str = "/usr/lib/wine/wine64";
const SERVER: &str = "/usr/lib/wine/wineserver64";

/// The folder with halprof.sys, client.exe and what the lab needs; `cargo xtask` tells it.
///
/// # Errors
/// Nobody told.
pub fn artifacts() -> Result<PathBuf> {
    told("HALPROF_ARTIFACTS")
}

/// The folder that `cargo xtask package` makes; it is told likewise.
///
/// # Errors
/// Nobody told.
pub fn package() -> Result<PathBuf> {
    told("HALPROF_PACKAGE")
}

fn told(variable: &str) -> Result<PathBuf> {
    let path = env::var_os(variable);
    path.map(PathBuf::from).with_context(|| format!("{variable} is not set: run `cargo xtask test` or `demo`"))
}

/// A running Wine. All its processes end with it.
#[derive(Debug)]
pub struct Wine {
    prefix: PathBuf,
}

impl Wine {
    /// Boots the prefix, without anything that an earlier boot left running.
    ///
    /// # Errors
    /// Wine or the prefix is not there.
    pub fn boot() -> Result<Self> {
        let wine = Self { prefix: told("HALPROF_PREFIX")? };
        wine.shut_down()?;
        // Persistent: drivers would go when the last program exits. Whoever starts the server gives it and all
        // services their output, so it has to be a file: a pipe would never come to its end.
        let log = File::create(wine.log()).with_context(|| format!("cannot write {}", wine.log().display()))?;
        let again = || log.try_clone().context("cannot share the log");
        let mut server = wine.command(SERVER);
        let ran = server.arg("-p").stdin(Stdio::null()).stdout(again()?).stderr(again()?).status();
        ensure!(ran.context("cannot start wineserver")?.success(), "wineserver failed: {}", wine.log().display());
        let mut first = wine.command(WINE);
        let ran = first.args(["cmd", "/c", "ver"]).stdin(Stdio::null()).stdout(again()?).stderr(again()?).status();
        ensure!(ran.context("cannot start wine")?.success(), "wine failed: {}", wine.log().display());
        Ok(wine)
    }

    fn log(&self) -> PathBuf {
        self.prefix.join("wine.log")
    }

    /// What drivers printed, and what else the services said.
    #[must_use]
    pub fn said(&self) -> String {
        fs::read(self.log()).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    fn shut_down(&self) -> Result<()> {
        for option in ["-k", "-w"] {
            let mut server = self.command(SERVER);
            // It fails where no server runs, which is as good.
            let _ = server.arg(option).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        }
        Ok(())
    }

    /// A file of drive C:, by its path below the root, with `/`.
    #[must_use]
    pub fn drive_c(&self, path: &str) -> PathBuf {
        self.prefix.join("drive_c").join(path)
    }

    /// Copies a file to drive C:.
    ///
    /// # Errors
    /// It can not be.
    pub fn copy(&self, from: &Path, to: &str) -> Result<()> {
        let to = self.drive_c(to);
        let folder = to.parent().context("a file in a folder")?;
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        fs::copy(from, &to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
        Ok(())
    }

    /// A Windows program, by its path on Linux or its name on Windows, not started yet.
    #[must_use]
    pub fn program(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = self.command(WINE);
        command.arg(program).args(arguments);
        command
    }

    /// Runs a Windows program to its end.
    ///
    /// # Errors
    /// It can not be started, or does not end. An exit code is no error.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<Ran> {
        let name = Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
        let line = format!("{name} {}", arguments.join(" "));
        Ran::run(&mut self.program(program, arguments), line)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("WINEPREFIX", &self.prefix)
            .env("WINEDEBUG", "-all,+debugstr")
            .env("WINEDLLOVERRIDES", "mscoree,mshtml=")
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY");
        command
    }
}

impl Drop for Wine {
    fn drop(&mut self) {
        // There is nobody to tell; the next boot shuts down what is left.
        let _ = self.shut_down();
    }
}
