//! A guest of Hyper-V on this Windows host, reached by PowerShell Direct, which needs no network in the guest.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, anyhow, ensure};

use super::{
    guest::{Call, Failure, Guest, HostAction, HostResult, Ran},
    host::{self, Output},
    powershell::{self, literal},
};

/// Time limit for a copy in either direction. A memory dump can have many gigabytes.
const COPY_LIMIT: Duration = Duration::from_hours(1);

/// Time limit for a command of Hyper-V, some of which shut the guest down.
const HOST_LIMIT: Duration = Duration::from_mins(15);

/// Begin the last line of an action's script.
const DONE: &str = "halprof-done ";
const REFUSED: &str = "halprof-refused ";

/// A virtual machine of Hyper-V.
pub struct HyperVGuest {
    name: String,
    /// File that `Get-Credential | Export-Clixml` wrote. Windows encrypts it for the user.
    credential: PathBuf,
    powershell: PathBuf,
}

impl HyperVGuest {
    /// Finds PowerShell in the folders of `path`, a value of PATH.
    pub fn new(name: &str, credential: Option<&Path>, path: &OsStr) -> Result<Self> {
        let powershell = host::find("powershell", path).context(
            "powershell is not on the PATH, and a machine of Hyper-V needs a Windows host\n  try: --address USER@HOST, \
             which reaches a guest of any hypervisor by SSH",
        )?;
        let credential = credential.context(
            "PowerShell Direct needs an account of the guest\n  try: Get-Credential | Export-Clixml guest.xml, then \
             --credential guest.xml",
        )?;
        ensure!(
            credential.is_file(),
            "{} is not a file: `Get-Credential | Export-Clixml` writes it",
            credential.display()
        );
        let credential = std::path::absolute(credential).context("the path of the credential")?;
        Ok(Self { name: name.to_owned(), credential, powershell })
    }

    /// Runs a script on the host. An error of it is printed to standard error, and exit code 1 reports it.
    fn on_host(&self, script: &str, limit: Duration) -> Result<Output> {
        let script = format!(
            "$ErrorActionPreference='Stop';$ProgressPreference='SilentlyContinue'\n\
             try{{\n{script}\n}}catch{{[Console]::Error.WriteLine($_.Exception.Message);exit 1}}"
        );
        host::run(Command::new(&self.powershell).args(powershell::arguments(&script)?), limit)
    }

    /// Returns the lines that open a session with the guest.
    fn session(&self) -> String {
        format!(
            "$c=Import-Clixml -LiteralPath {}\n$s=New-PSSession -VMName {} -Credential $c\n",
            literal(&self.credential.to_string_lossy()),
            literal(&self.name)
        )
    }

    fn failure(&self, output: &Output) -> Failure {
        let text = output.err.trim();
        if text.contains("credential") {
            return Failure::Host(anyhow!(
                "{} refuses the account in {}: {text}\n  try: Get-Credential | Export-Clixml FILE",
                self.name,
                self.credential.display()
            ));
        }
        Failure::Lost(if text.is_empty() { format!("the session with {} ended", self.name) } else { text.to_owned() })
    }

    fn copy(&self, line: &str) -> Result<(), Failure> {
        let script = format!("{}{line}", self.session());
        let output = self.on_host(&script, COPY_LIMIT).map_err(Failure::Host)?;
        if output.code == Some(0) { Ok(()) } else { Err(self.failure(&output)) }
    }

    /// Returns the script of an action. Its last output is [`DONE`] or [`REFUSED`] with a text.
    fn action(&self, action: HostAction) -> String {
        let name = literal(&self.name);
        let stop = format!("if((Get-VM -Name {name}).State -ne 'Off'){{Stop-VM -Name {name} -Force}}\n");
        match action {
            HostAction::SecureBootOff => format!(
                "if((Get-VM -Name {name}).Generation -eq 1){{'{DONE}generation 1 has no Secure Boot';exit 0}}\n\
                 if((Get-VMFirmware -VMName {name}).SecureBoot -eq 'Off'){{'{DONE}Secure Boot was off';exit 0}}\n\
                 {stop}Set-VMFirmware -VMName {name} -EnableSecureBoot Off\nStart-VM -Name {name}\n\
                 '{DONE}Secure Boot is off'"
            ),
            // A host that does not support it refuses to start the machine; the setting is reverted then.
            HostAction::ExposeCounters => format!(
                "{stop}Set-VMProcessor -VMName {name} -ExposeVirtualizationExtensions $false\n\
                 try{{Set-VMProcessor -VMName {name} -Perfmon @('pmu');Start-VM -Name {name}}}\
                 catch{{$m=$_.Exception.Message;Set-VMProcessor -VMName {name} -Perfmon @();Start-VM -Name {name}\n\
                 '{REFUSED}'+$m;exit 0}}\n\
                 $p=(Get-VMProcessor -VMName {name}).Perfmon -join ' '\n\
                 if($p -match 'pmu'){{'{DONE}Perfmon: '+$p}}else{{'{REFUSED}Get-VMProcessor names no pmu: '+$p}}"
            ),
            HostAction::Checkpoint => format!(
                "Checkpoint-VM -Name {name} -SnapshotName 'before halprof'\n'{DONE}checkpoint \"before halprof\"'"
            ),
            HostAction::Interrupt => {
                format!("Debug-VM -Name {name} -InjectNonMaskableInterrupt -Force\n'{DONE}injected an interrupt'")
            }
        }
    }
}

impl Guest for HyperVGuest {
    fn check(&mut self) -> Result<()> {
        let output = self.on_host(&format!("(Get-VM -Name {}).State", literal(&self.name)), HOST_LIMIT)?;
        ensure!(
            output.code == Some(0),
            "Hyper-V does not show a machine {}: {}\n  try: Get-VM in an elevated prompt, which lists the machines",
            self.name,
            output.err.trim()
        );
        Ok(())
    }

    fn run(&mut self, call: &Call, limit: Duration) -> Result<Ran, Failure> {
        let inner = literal(&powershell::script(call, limit));
        let invoke = format!("Invoke-Command -Session $s -ScriptBlock ([ScriptBlock]::Create({inner}))");
        let script = format!("{}{}", self.session(), powershell::printed(&invoke));
        let output = self.on_host(&script, limit + host::MARGIN).map_err(Failure::Host)?;
        powershell::answer(&output.out).unwrap_or_else(|| Err(self.failure(&output)))
    }

    fn copy_in(&mut self, from: &Path, to: &str) -> Result<(), Failure> {
        let from = literal(&from.join("*").to_string_lossy());
        self.copy(&format!("Copy-Item -ToSession $s -Path {from} -Destination {} -Recurse -Force", literal(to)))
    }

    fn copy_out(&mut self, from: &str, to: &Path) -> Result<(), Failure> {
        let to = literal(&to.to_string_lossy());
        self.copy(&format!("Copy-Item -FromSession $s -LiteralPath {} -Destination {to}", literal(from)))
    }

    fn host(&mut self, action: HostAction) -> Result<HostResult, Failure> {
        let output = self.on_host(&self.action(action), HOST_LIMIT).map_err(Failure::Host)?;
        let said =
            |mark: &str| output.out.lines().rev().find_map(|line| Some(line.trim().strip_prefix(mark)?.to_owned()));
        Ok(match (said(DONE), said(REFUSED)) {
            (_, Some(text)) => HostResult::Refused(text),
            (Some(text), _) => HostResult::Done(text),
            (None, None) => HostResult::Refused(output.err.trim().to_owned()),
        })
    }
}
