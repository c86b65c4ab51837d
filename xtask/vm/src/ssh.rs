//! A guest that is reached by SSH, with any hypervisor. It needs the SSH server of Windows, and an administrator's
//! account that accepts a key.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};

use super::{
    guest::{Call, Failure, Guest, HostAction, HostResult, Ran},
    host::{self, Output},
    powershell,
};

/// Options of ssh and scp. Host keys are checked as the user's configuration says. BatchMode makes a
/// question fail instead of waiting for an answer.
const OPTIONS: [&str; 8] =
    ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"];

/// Exit code of ssh if the connection failed or ended.
const NO_CONNECTION: i32 = 255;

/// Time limit for a copy in either direction. A memory dump can have many gigabytes.
const COPY_LIMIT: Duration = Duration::from_hours(1);

/// Messages of ssh after which another try would fail as well, and what to do.
const FINAL: [(&str, &str); 4] = [
    (
        "Host key verification failed",
        "connect once by hand, compare the key of the host with that of the guest, and accept it",
    ),
    ("Permission denied", "add your public key to C:\\ProgramData\\ssh\\administrators_authorized_keys in the guest"),
    ("Could not resolve hostname", "correct the name behind --address"),
    ("Bad configuration option", "correct the configuration of ssh"),
];

/// The guest behind an address of SSH.
pub struct SshGuest {
    /// `user@host`, or a name of the user's configuration of ssh.
    address: String,
    ssh: PathBuf,
    scp: PathBuf,
}

impl SshGuest {
    /// Finds the programs in the folders of `path`, a value of PATH.
    pub fn new(address: &str, path: &OsStr) -> Result<Self> {
        ensure!(
            !address.is_empty() && !address.starts_with('-') && !address.contains([' ', ':', '/']),
            "\"{address}\" is no address of SSH: use USER@HOST, or a name of ~/.ssh/config, where a port can be set"
        );
        let program = |name| {
            host::find(name, path)
                .with_context(|| format!("{name} is not on the PATH: install the OpenSSH client, which has it"))
        };
        Ok(Self { address: address.to_owned(), ssh: program("ssh")?, scp: program("scp")? })
    }

    /// Returns the failure that an output of ssh or scp reports.
    fn failure(&self, output: &Output) -> Failure {
        let text = output.err.trim();
        let advice = FINAL.iter().find(|(message, _)| text.contains(message)).map(|(_, advice)| advice);
        match advice {
            Some(advice) => Failure::Host(anyhow!("ssh cannot log in to {}: {text}\n  try: {advice}", self.address)),
            None if text.is_empty() => Failure::Lost(format!("the connection to {} ended", self.address)),
            None => Failure::Lost(text.to_owned()),
        }
    }

    fn copy(&self, command: &mut Command) -> Result<(), Failure> {
        let output = host::run(command, COPY_LIMIT).map_err(Failure::Host)?;
        if output.code == Some(0) { Ok(()) } else { Err(self.failure(&output)) }
    }

    /// Returns a path of the guest as scp takes it.
    fn remote(&self, path: &str) -> String {
        format!("{}:{}", self.address, path.replace('\\', "/"))
    }

    fn scp(&self) -> Command {
        let mut command = Command::new(&self.scp);
        command.args(OPTIONS).args(["-q", "-r"]);
        command
    }
}

/// Returns the script that the guest's PowerShell runs for a call.
pub fn script(call: &Call, limit: Duration) -> String {
    powershell::printed(&format!("&{{\n{}}}", powershell::script(call, limit)))
}

impl Guest for SshGuest {
    fn check(&mut self) -> Result<()> {
        let output = host::run(Command::new(&self.ssh).arg("-V"), Duration::from_secs(30))?;
        ensure!(output.code == Some(0), "{} does not run: {}", self.ssh.display(), output.err.trim());
        Ok(())
    }

    fn run(&mut self, call: &Call, limit: Duration) -> Result<Ran, Failure> {
        let arguments = powershell::arguments(&script(call, limit)).map_err(Failure::Host)?;
        let mut command = Command::new(&self.ssh);
        command.args(OPTIONS).arg(&self.address).arg("powershell.exe").args(arguments);
        let output = host::run(&mut command, limit + host::MARGIN).map_err(Failure::Host)?;
        powershell::answer(&output.out).unwrap_or_else(|| {
            Err(match output.code {
                None | Some(NO_CONNECTION) => self.failure(&output),
                Some(code) => Failure::Host(anyhow!(
                    "the shell of {} does not run PowerShell as expected (exit code {code}): {}\n  try: ssh {} \
                     powershell.exe -Command Get-Date",
                    self.address,
                    output.err.trim(),
                    self.address
                )),
            })
        })
    }

    fn copy_in(&mut self, from: &Path, to: &str) -> Result<(), Failure> {
        let mut command = self.scp();
        for entry in fs::read_dir(from).map_err(|error| Failure::Host(error.into()))? {
            command.arg(entry.map_err(|error| Failure::Host(error.into()))?.path());
        }
        self.copy(command.arg(self.remote(to)))
    }

    fn copy_out(&mut self, from: &str, to: &Path) -> Result<(), Failure> {
        self.copy(self.scp().arg(self.remote(from)).arg(to))
    }

    fn host(&mut self, action: HostAction) -> Result<HostResult, Failure> {
        let what = match action {
            HostAction::SecureBootOff => "turn Secure Boot off in the settings of the virtual machine",
            HostAction::ExposeCounters => {
                "expose the counters in the settings of the virtual machine (windows.md, step 2)"
            }
            HostAction::Checkpoint => "create a checkpoint before the run",
            HostAction::Interrupt => "reset the virtual machine in its hypervisor",
        };
        Ok(HostResult::ByHand(format!("SSH does not control the hypervisor: {what}")))
    }
}
