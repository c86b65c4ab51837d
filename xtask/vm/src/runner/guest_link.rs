//! The connection to a guest that may be down: waiting with a limit, restarts, and crash dumps.

use std::{path::Path, time::Duration};

use anyhow::{Error, Result, anyhow, bail, ensure};

use super::super::{
    guest::{Call, Clock, Failure, Guest, HostAction, HostResult, OUTPUT, ROOT, Ran},
    state::{Crash, State},
};
use xtask::{files, run};

/// How long a guest may take to answer: Windows can install updates in a restart.
const ANSWER_LIMIT: Duration = Duration::from_mins(15);
/// Time between two attempts to reach it.
const PAUSE: Duration = Duration::from_secs(10);
/// Time limit for a small program of Windows.
const SHORT: Duration = Duration::from_mins(1);
/// How long after a restart a dump may appear: Windows writes MEMORY.DMP from the page file after it booted.
const DUMP_LIMIT: Duration = Duration::from_mins(3);

/// How a call ended.
pub enum Called {
    /// The program ran to its end.
    Ran(Ran),
    /// It was ended after its limit.
    TimedOut,
    /// The connection was lost, and the guest has not restarted.
    Lost(String),
    /// The guest has restarted; with the new time of its boot.
    Restarted(String),
}

/// The guest, the time, and the folder of the run.
pub struct GuestLink<'a> {
    guest: &'a mut dyn Guest,
    clock: &'a mut dyn Clock,
    folder: &'a Path,
}

/// Returns the error of a failure for which waiting does not help.
fn fatal(failure: Failure) -> Error {
    match failure {
        Failure::Host(error) => error,
        Failure::Lost(text) => {
            anyhow!("the guest does not answer any more: {text}\n  try: the same command, which goes on here")
        }
        Failure::TimedOut => {
            anyhow!("a program of Windows did not end in the guest\n  try: the same command, which goes on here")
        }
    }
}

impl<'a> GuestLink<'a> {
    /// Makes a link.
    pub fn new(guest: &'a mut dyn Guest, clock: &'a mut dyn Clock, folder: &'a Path) -> Self {
        Self { guest, clock, folder }
    }

    /// Returns the present time.
    pub fn now(&self) -> Duration {
        self.clock.now()
    }

    /// Acts on the virtual machine.
    pub fn host(&mut self, action: HostAction) -> Result<HostResult, Failure> {
        self.guest.host(action)
    }

    /// Waits until the guest answers, and returns when it booted.
    pub fn wait_for_answer(&mut self) -> Result<String> {
        self.poll(None)?.map_err(|text| {
            anyhow!(
                "the guest has not answered for {}: {text}\n  try: start the virtual machine, check that it is reachable, \
                 and run the same command again, which goes on here",
                run::duration(ANSWER_LIMIT)
            )
        })
    }

    /// Waits until the guest answers; if `other_than` is a time of boot, with another one. Returns the last failure if
    /// it does not within the limit.
    fn poll(&mut self, other_than: Option<&str>) -> Result<Result<String, String>> {
        let begun = self.clock.now();
        loop {
            let failure = match self.guest.run(&Call::boot_time(), SHORT) {
                Ok(Ran { code: 0, out, .. }) if other_than == Some(out.trim()) => "it has not restarted".to_owned(),
                Ok(Ran { code: 0, out, .. }) => return Ok(Ok(out.trim().to_owned())),
                Ok(ran) => format!("PowerShell exited with {}: {}", ran.code, ran.err.trim()),
                Err(Failure::Lost(text)) => text,
                Err(Failure::TimedOut) => "PowerShell did not end".to_owned(),
                Err(Failure::Host(error)) => return Err(error),
            };
            if self.clock.now().saturating_sub(begun) > ANSWER_LIMIT {
                return Ok(Err(failure));
            }
            self.clock.sleep(PAUSE);
        }
    }

    /// Runs a program for a step. `boot` is the time at which the guest had booted before.
    pub fn call(&mut self, step: &str, call: &Call, limit: Duration, boot: Option<&str>) -> Result<Called> {
        let lost = match self.guest.run(call, limit) {
            Ok(ran) => return Ok(Called::Ran(ran)),
            Err(Failure::TimedOut) => return Ok(Called::TimedOut),
            Err(Failure::Host(error)) => return Err(error),
            Err(Failure::Lost(text)) => text,
        };
        let now = self.wait_or_interrupt(step)?;
        Ok(if boot == Some(now.as_str()) { Called::Lost(lost) } else { Called::Restarted(now) })
    }

    /// Waits until the guest answers. If it hangs, interrupts it, so that it writes a dump and restarts.
    fn wait_or_interrupt(&mut self, step: &str) -> Result<String> {
        let text = match self.poll(None)? {
            Ok(boot) => return Ok(boot),
            Err(text) => text,
        };
        let advice = match self.guest.host(HostAction::Interrupt).map_err(fatal)? {
            HostResult::Done(_) => return self.wait_for_answer(),
            HostResult::Refused(reason) | HostResult::ByHand(reason) => reason,
        };
        bail!(
            "the guest has not answered for {} since the step {step}: {text}\n  because: {advice}\n  try: reset the virtual \
             machine, then run the same command again, which goes on with the next step",
            run::duration(ANSWER_LIMIT)
        )
    }

    /// Restarts the guest. Returns when it booted, or nothing if it answers and has not restarted.
    pub fn restart(&mut self, step: &str, boot: Option<&str>) -> Result<Option<String>> {
        if let Err(Failure::Host(error)) = self.guest.run(&Call::restart(), SHORT) {
            return Err(error);
        }
        if let Ok(now) = self.poll(boot)? {
            return Ok(Some(now));
        }
        let now = self.wait_or_interrupt(step)?;
        Ok(Some(now).filter(|now| Some(now.as_str()) != boot))
    }

    /// Copies the payload into an empty folder of the guest.
    pub fn copy_payload(&mut self, limit: Duration) -> Result<()> {
        let line = format!(
            "if(Test-Path {ROOT}){{Remove-Item -Recurse -Force {ROOT}}};New-Item -ItemType Directory {ROOT},{OUTPUT}|Out-Null"
        );
        let ran = self.guest.run(&Call::powershell(&line), limit).map_err(fatal)?;
        ensure!(ran.code == 0, "cannot make {ROOT} in the guest: {}", ran.err.trim());
        self.guest.copy_in(&self.folder.join("payload"), ROOT).map_err(fatal)
    }

    /// Ends the programs that a step left running when the host's command was ended. It is no error if none runs.
    pub fn end_leftovers(&mut self) -> Result<()> {
        for image in ["client.exe", "halprof-agent.exe", "end_to_end.exe"] {
            self.guest.run(&Call::end(image), SHORT).map_err(fatal)?;
        }
        Ok(())
    }

    /// Returns the crash dumps that the guest lists.
    pub fn list_dumps(&mut self) -> Result<Vec<String>> {
        let ran = self.guest.run(&Call::dumps(), SHORT).map_err(fatal)?;
        ensure!(ran.code == 0, "cannot list the crash dumps of the guest: {}", ran.err.trim());
        Ok(ran.out.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect())
    }

    /// Collects the dumps of a crash. It waits for them, and until Windows has written them.
    pub fn collect(&mut self, state: &mut State, step: &str) -> Result<Crash> {
        let begun = self.clock.now();
        let mut last = Vec::new();
        loop {
            let listed = self.list_dumps()?;
            let known = state.dumps.as_deref().unwrap_or_default();
            let complete = listed == last && listed.iter().any(|dump| !known.contains(dump));
            if complete || self.clock.now().saturating_sub(begun) > DUMP_LIMIT {
                let known = state.dumps.replace(listed.clone()).unwrap_or_default();
                let new: Vec<&String> = listed.iter().filter(|dump| !known.contains(dump)).collect();
                return self.copy_dumps(&new, step);
            }
            last = listed;
            self.clock.sleep(PAUSE);
        }
    }

    /// Collects the dumps that a restart has left, if there are any.
    pub fn collect_after_restart(&mut self, state: &mut State, step: &str) -> Result<Crash> {
        let (listed, known) = (self.list_dumps()?, state.dumps.as_deref().unwrap_or_default());
        if listed.iter().all(|dump| known.contains(dump)) { Ok(Crash::default()) } else { self.collect(state, step) }
    }

    /// Copies dumps, as the guest lists them. One that cannot be copied does not end the run.
    fn copy_dumps(&mut self, dumps: &[&String], step: &str) -> Result<Crash> {
        let mut crash = Crash::default();
        for dump in dumps {
            let path = dump.split('|').next().unwrap_or_default();
            let name = path.rsplit('\\').next().unwrap_or_default();
            let relative = format!("dumps/{step}/{name}");
            files::make_folder(&self.folder.join("dumps").join(step))?;
            match self.guest.copy_out(path, &self.folder.join(&relative)) {
                Ok(()) => crash.dumps.push(relative),
                Err(failure) => crash.missing.push(format!("{path}: {}", fatal(failure))),
            }
        }
        Ok(crash)
    }
}
