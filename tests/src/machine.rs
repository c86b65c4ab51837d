//! The machine of the tests that do not need the model. On Windows it is this machine and its own processor, with the
//! package's driver as a service; on Linux it is the lab.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::event_access;
use crate::lab::Lab;
use crate::program::ProgramOutput;
use crate::wine::package;

/// The client's exit code if the driver is not installed.
const NOT_INSTALLED: i32 = 3;

/// A machine on which halprof is not installed yet.
pub struct Machine {
    /// The lab, on Linux.
    lab: Option<Lab>,
}

impl Machine {
    /// Starts the machine and checks that halprof is not installed on it.
    ///
    /// # Errors
    /// Something is missing, or halprof is installed already, which the test would remove.
    pub fn boot() -> Result<Self> {
        let lab = if cfg!(windows) { None } else { Some(Lab::boot("haswell-4710mq")?) };
        let mut machine = Self { lab };
        if let Some(lab) = &mut machine.lab {
            lab.run_in_real_time()?;
        }
        let status = machine.client(&["status"])?;
        ensure!(
            status.code == NOT_INSTALLED,
            "halprof is installed on this machine, and the tests would remove it. Run `.\\client uninstall` first\n{}{}",
            status.out,
            status.err
        );
        Ok(machine)
    }

    /// Runs a Windows program, given by its path or name, and waits until it exits.
    ///
    /// # Errors
    /// The program cannot be started or does not end. An exit code is not an error.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<ProgramOutput> {
        match &self.lab {
            Some(lab) => lab.wine().run(program, arguments),
            None => {
                ProgramOutput::run(Command::new(program).args(arguments), format!("{program} {}", arguments.join(" ")))
            }
        }
    }

    /// Runs the package's client.exe and waits until it exits.
    ///
    /// # Errors
    /// The program cannot be started or does not end. An exit code is not an error.
    pub fn client(&self, arguments: &[&str]) -> Result<ProgramOutput> {
        self.run(&package()?.join("client.exe").to_string_lossy(), arguments)
    }

    /// Returns the Windows path of a file in the package.
    ///
    /// # Errors
    /// The path of the package is not set.
    pub fn package_file(&self, name: &str) -> Result<String> {
        let path = package()?.join(name).to_string_lossy().into_owned();
        // Drive Z: of Wine is the root of the file system.
        Ok(if self.lab.is_some() { format!("Z:{}", path.replace('/', "\\")) } else { path })
    }

    /// Returns the path to which `client install` copies the driver.
    ///
    /// # Errors
    /// SystemRoot is not set.
    pub fn driver(&self) -> Result<PathBuf> {
        const BELOW: &str = "system32/drivers/halprof.sys";
        match &self.lab {
            Some(lab) => Ok(lab.wine().drive_c("windows").join(BELOW)),
            None => Ok(PathBuf::from(env::var_os("SystemRoot").context("SystemRoot is not set")?).join(BELOW)),
        }
    }

    /// Writes a file for one test and returns its Windows path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<String> {
        let (path, windows_path) = match &self.lab {
            Some(lab) => (lab.wine().drive_c("windows/temp").join(name), format!("C:\\windows\\temp\\{name}")),
            None => (env::temp_dir().join(name), env::temp_dir().join(name).to_string_lossy().into_owned()),
        };
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(windows_path)
    }

    /// Returns the names of the files of the driver, also of those that only an unfinished installation leaves.
    ///
    /// # Errors
    /// The folder of the drivers cannot be read.
    pub fn driver_files(&self) -> Result<Vec<String>> {
        let driver = self.driver()?;
        let folder = driver.parent().context("the folder of the drivers")?;
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.retain(|name| name.starts_with("halprof"));
        names.sort();
        Ok(names)
    }

    /// Returns the security descriptor of the driver's events in the registry.
    ///
    /// # Errors
    /// The registry cannot be read, or the value is not binary.
    pub fn event_descriptor(&self) -> Result<Option<Vec<u8>>> {
        event_access::query(|program, arguments| self.run(program, arguments))
    }

    /// Sets or removes the security descriptor of the driver's events in the registry.
    ///
    /// # Errors
    /// The registry cannot be changed.
    pub fn set_event_descriptor(&self, descriptor: Option<&[u8]>) -> Result<()> {
        event_access::set(|program, arguments| self.run(program, arguments), descriptor)
    }

    /// Uninstalls the driver and checks that nothing of it is left.
    ///
    /// # Errors
    /// The driver cannot be uninstalled; its service, its file or the descriptor of its events is still there; or the
    /// lab reports a violation.
    pub fn finish(self) -> Result<()> {
        self.client(&["uninstall"])?.success()?;
        let status = self.client(&["status"])?;
        ensure!(status.code == NOT_INSTALLED, "the service is still there: {}{}", status.out, status.err);
        let files = self.driver_files()?;
        ensure!(files.is_empty(), "{files:?} are still there");
        ensure!(self.event_descriptor()?.is_none(), "the descriptor of the events is still there");
        self.lab.map_or(Ok(()), Lab::finish)
    }
}
