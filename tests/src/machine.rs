//! The machine of the tests that ask nothing of the model: on Windows it is the machine itself, with the driver of the
//! package as a service and its own processor; on Linux it is the lab, of whose model they know nothing.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::lab::Lab;
use crate::program::Ran;
use crate::wine::package;

/// The client's exit code where the driver is not installed.
const NOT_INSTALLED: i32 = 3;

/// A machine on which halprof is not installed yet.
pub struct Machine {
    /// What stands for Windows, where there is none.
    lab: Option<Lab>,
}

impl Machine {
    /// Finds the machine in order.
    ///
    /// # Errors
    /// Something is missing; or on Windows somebody has installed halprof, which a test would take away.
    pub fn boot() -> Result<Self> {
        let lab = if cfg!(windows) { None } else { Some(Lab::boot("haswell-4710mq")?) };
        let mut machine = Self { lab };
        if let Some(lab) = &mut machine.lab {
            lab.live()?;
        }
        let status = machine.client(&["status"])?;
        ensure!(
            status.code == NOT_INSTALLED,
            "halprof is installed on this machine, and the tests would take it away. First: client uninstall\n{}{}",
            status.out,
            status.err
        );
        Ok(machine)
    }

    /// Runs a Windows program to its end, by its path or its name.
    ///
    /// # Errors
    /// It can not be started, or does not end. An exit code is no error.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<Ran> {
        match &self.lab {
            Some(lab) => lab.wine().run(program, arguments),
            None => Ran::run(Command::new(program).args(arguments), format!("{program} {}", arguments.join(" "))),
        }
    }

    /// Runs the package's client.exe to its end.
    ///
    /// # Errors
    /// It can not be started, or does not end. An exit code is no error.
    pub fn client(&self, arguments: &[&str]) -> Result<Ran> {
        self.run(&package()?.join("client.exe").to_string_lossy(), arguments)
    }

    /// A file of the package, as Windows programs name it.
    ///
    /// # Errors
    /// Nobody told where the package is.
    pub fn packed(&self, name: &str) -> Result<String> {
        let path = package()?.join(name).to_string_lossy().into_owned();
        // Wine has the root of the file system as drive Z:.
        Ok(if self.lab.is_some() { format!("Z:{}", path.replace('/', "\\")) } else { path })
    }

    /// Where `client install` puts the driver.
    ///
    /// # Errors
    /// Windows does not say where it lives.
    pub fn driver(&self) -> Result<PathBuf> {
        const BELOW: &str = "system32/drivers/halprof.sys";
        match &self.lab {
            Some(lab) => Ok(lab.wine().drive_c("windows").join(BELOW)),
            None => Ok(PathBuf::from(env::var_os("SystemRoot").context("no SystemRoot")?).join(BELOW)),
        }
    }

    /// Uninstalls the driver, and makes sure that nothing is left of it.
    ///
    /// # Errors
    /// What it left.
    pub fn finish(self) -> Result<()> {
        self.client(&["uninstall"])?.success()?;
        let status = self.client(&["status"])?;
        ensure!(status.code == NOT_INSTALLED, "the service is still there: {}{}", status.out, status.err);
        let driver = self.driver()?;
        ensure!(!driver.exists(), "{} is still there", driver.display());
        self.lab.map_or(Ok(()), Lab::finish)
    }
}
