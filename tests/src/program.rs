//! Running a program to its end.

use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::HANG_LIMIT;
use crate::log;

/// The result of a program.
#[derive(Debug, Clone)]
pub struct ProgramOutput {
    /// The command line.
    pub line: String,
    /// Exit code, or -1 if a signal ended the program.
    pub code: i32,
    /// The same, or the signal that ended the program.
    status: ExitStatus,
    /// Standard output, with LF line ends.
    pub out: String,
    /// Standard error, with LF line ends.
    pub err: String,
}

impl ProgramOutput {
    /// Runs a program and waits until it exits.
    pub(crate) fn run(command: &mut Command, line: String) -> Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("cannot start {line}"))?;
        log::note(&format!("{line}: begins"));
        let id = child.id();
        let waiter = thread::spawn(move || child.wait_with_output());
        let started = Instant::now();
        while !waiter.is_finished() {
            if started.elapsed() > HANG_LIMIT {
                // The waiting thread reaps the process after the kill. It is not joined.
                let id = id.to_string();
                let (killer, how): (_, &[&str]) =
                    if cfg!(windows) { ("taskkill", &["/F", "/PID"]) } else { ("kill", &["-9"]) };
                Command::new(killer).args(how).arg(id).status().with_context(|| format!("cannot run {killer}"))?;
                bail!("{line} did not exit within {HANG_LIMIT:?}");
            }
            thread::sleep(Duration::from_millis(2));
        }
        let output = waiter.join().ok().with_context(|| format!("no output of {line}"))??;
        let ran = Self::new(line, &output);
        let said = ran.err.lines().next().unwrap_or_default();
        log::note(&format!("{}: {} after {:.3} s: {said}", ran.line, ran.status, started.elapsed().as_secs_f64()));
        Ok(ran)
    }

    fn new(line: String, output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        let code = output.status.code().unwrap_or(-1);
        Self { line, code, status: output.status, out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Returns the result itself if the exit code is 0.
    ///
    /// # Errors
    /// The program failed; the error contains its output.
    pub fn success(self) -> Result<Self> {
        if self.code == 0 {
            return Ok(self);
        }
        bail!("{}: {}\n{}{}", self.line, self.status, self.out, self.err)
    }

    /// Parses the standard output of the client as JSON.
    ///
    /// # Errors
    /// The client failed, did not print JSON, or printed an object that does not agree with its schema.
    pub fn json(self) -> Result<serde_json::Value> {
        let ran = self.success()?;
        let object =
            serde_json::from_str(&ran.out).with_context(|| format!("{} printed no JSON:\n{}", ran.line, ran.out))?;
        json_schemas::check(&object).with_context(|| ran.line)?;
        Ok(object)
    }
}
