//! The lab for users: commands that talk to the driver on a processor of the model.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use bench_protocol::{PROCESSOR_IDENTITY, TraceScript};

use crate::lab::Lab;
use crate::wine::{artifacts, package};
use crate::workload::{Description, Workload};

/// The description of the workload that a user has started, while it runs.
const DESCRIPTION: &str = "lab/workload.json";

/// Time between two looks at that file.
const INTERVAL: Duration = Duration::from_millis(20);

/// What the command `client` says before a self-test.
const BEFORE_CLIENT: &str = "\
if [ \"$1\" = selftest ]; then
  echo 'lab: the model does not execute the loops of selftest, so its tests fail here' >&2
fi
";

/// A lab that runs in real time, with commands for a Unix shell: `client` and `halprof`, the client of the package
/// under Wine, and `workload`.
pub struct Shell {
    lab: Lab,
    /// What the processors execute while no other workload runs.
    workload: Workload,
    /// PATH with the commands.
    path: OsString,
}

impl Shell {
    /// Boots a machine of this identity, on which halprof is not installed yet.
    ///
    /// # Errors
    /// Something is missing, or the identity does not exist.
    pub fn open(identity: &str) -> Result<Self> {
        let mut lab = Lab::boot(identity)?;
        let workload = lab.workload()?;
        lab.execute_with_stacks(&workload.description)?;
        lab.run_in_real_time()?;
        let path = env::var_os("PATH").unwrap_or_default();
        let folder = lab.wine().drive_c("lab/bin");
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        write_commands(&lab, identity, &folder)?;
        let path = env::join_paths([folder].into_iter().chain(env::split_paths(&path)))?;
        Ok(Self { lab, workload, path })
    }

    /// Runs a command of Linux to its end. While it runs, the processors execute the workload that the user starts.
    ///
    /// # Errors
    /// The command cannot be started, or the connection to the lab is lost.
    pub fn run(&mut self, command: &mut Command) -> Result<ExitStatus> {
        let started = command.env("PATH", &self.path).spawn();
        let mut child = started.with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let description = self.lab.wine().drive_c(DESCRIPTION);
        let mut executed = None;
        loop {
            let text = fs::read(&description).unwrap_or_default();
            let running: Option<Description> = serde_json::from_slice(&text).ok();
            let process = running.as_ref().map(|running| running.process);
            if process != executed {
                self.lab.execute_with_stacks(running.as_ref().unwrap_or(&self.workload.description))?;
                executed = process;
            }
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            sleep(INTERVAL);
        }
    }

    /// Uninstalls the driver and checks that it left nothing.
    ///
    /// # Errors
    /// The driver left something behind or violated a rule.
    pub fn finish(self) -> Result<()> {
        drop(self.workload);
        self.lab.finish()
    }
}

fn write_commands(lab: &Lab, identity: &str, folder: &Path) -> Result<()> {
    let artifacts = artifacts()?;
    // Wine has drive Z: for the root of the file system. A program that `client` starts is searched for there.
    let search_path = format!("Z:{}", artifacts.display()).replace('/', "\\");
    // A Unix shell takes `.\client` of the documents for `.client`.
    for (name, file) in [("client", "client"), (".client", "client"), ("halprof", "halprof")] {
        let program = package()?.join(format!("{file}.exe"));
        let mut command = lab.traced_program(&program.to_string_lossy(), &TraceScript::default())?();
        command.env("WINEPATH", &search_path).env(PROCESSOR_IDENTITY, identity);
        write_command(&folder.join(name), BEFORE_CLIENT, &command)?;
    }
    let workload = lab.wine().program(&artifacts.join("workload.exe").to_string_lossy(), &[]);
    write_command(&folder.join("workload"), "", &workload)
}

/// Writes a shell script that does `first`, then runs a command with the arguments of the script.
fn write_command(path: &Path, first: &str, command: &Command) -> Result<()> {
    let quoted = |text: &OsStr| format!("'{}'", text.to_string_lossy().replace('\'', r"'\''"));
    let set = |(name, value): (&OsStr, Option<&OsStr>)| {
        let name = name.to_string_lossy();
        value.map_or_else(|| format!("unset {name}\n"), |value| format!("export {name}={}\n", quoted(value)))
    };
    let environment: String = command.get_envs().map(set).collect();
    let words: Vec<String> = [command.get_program()].into_iter().chain(command.get_args()).map(quoted).collect();
    let text = format!("#!/bin/sh\n{environment}{first}exec {} \"$@\"\n", words.join(" "));
    write_program(path, &text).with_context(|| format!("cannot write {}", path.display()))
}

fn write_program(path: &Path, text: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o755);
    options.open(path)?.write_all(text.as_bytes())
}
