//! A program that ran.

use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a program may take: far more than any of ours needs, far less than a hung test run.
const PATIENCE: Duration = Duration::from_mins(1);

/// What a program said.
#[derive(Debug, Clone)]
pub struct Ran {
    /// What was run.
    pub line: String,
    /// Exit code; -1 where a signal ended it.
    pub code: i32,
    /// Standard output, lines ended as on Unix.
    pub out: String,
    /// Standard error, likewise.
    pub err: String,
}

impl Ran {
    /// Runs a program to its end.
    pub(crate) fn run(command: &mut Command, line: String) -> Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("cannot start {line}"))?;
        let id = child.id();
        let waiter = thread::spawn(move || child.wait_with_output());
        let begun = Instant::now();
        while !waiter.is_finished() {
            if begun.elapsed() > PATIENCE {
                // The waiter reaps it, or is left behind with it.
                let id = id.to_string();
                let (killer, how): (_, &[&str]) =
                    if cfg!(windows) { ("taskkill", &["/F", "/PID"]) } else { ("kill", &["-9"]) };
                Command::new(killer).args(how).arg(id).status().with_context(|| format!("cannot run {killer}"))?;
                bail!("{line} did not end within {PATIENCE:?}");
            }
            thread::sleep(Duration::from_millis(2));
        }
        let output = waiter.join().ok().with_context(|| format!("no output of {line}"))??;
        Ok(Self::new(line, &output))
    }

    fn new(line: String, output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        let code = output.status.code().unwrap_or(-1);
        Self { line, code, out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// The program itself, if it exited with 0.
    ///
    /// # Errors
    /// What it said, if not.
    pub fn success(self) -> Result<Self> {
        if self.code == 0 {
            return Ok(self);
        }
        bail!("{} exited with {}\n{}{}", self.line, self.code, self.out, self.err)
    }

    /// What it printed, as JSON.
    ///
    /// # Errors
    /// It failed, or printed something else.
    pub fn json(self) -> Result<serde_json::Value> {
        let ran = self.success()?;
        serde_json::from_str(&ran.out).with_context(|| format!("{} printed no JSON:\n{}", ran.line, ran.out))
    }
}
