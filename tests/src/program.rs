//! Running a program to its end.

use std::fs;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::HANG_LIMIT;
use crate::log;

/// How often a program that runs long is looked at.
const LOOK: Duration = Duration::from_secs(10);

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
    /// It was killed because it hung in a [lock of Wine](is_in_a_lock_of_wine).
    pub(crate) hung_in_wine: bool,
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
        let (mut hung_in_wine, mut next_look) = (false, LOOK);
        while !waiter.is_finished() && !hung_in_wine {
            if started.elapsed() > next_look {
                next_look += LOOK;
                hung_in_wine = is_in_a_lock_of_wine(&system_calls(id));
            }
            if hung_in_wine || started.elapsed() > HANG_LIMIT {
                // The waiting thread reaps the process after the kill. After an error it is not joined.
                let id = id.to_string();
                let (killer, how): (_, &[&str]) =
                    if cfg!(windows) { ("taskkill", &["/F", "/PID"]) } else { ("kill", &["-9"]) };
                Command::new(killer).args(how).arg(id).status().with_context(|| format!("cannot run {killer}"))?;
                if !hung_in_wine {
                    bail!("{line} did not exit within {HANG_LIMIT:?}");
                }
            }
            thread::sleep(Duration::from_millis(2));
        }
        let output = waiter.join().ok().with_context(|| format!("no output of {line}"))??;
        let ran = Self { hung_in_wine, ..Self::new(line, &output) };
        let said = ran.err.lines().next().unwrap_or_default();
        log::note(&format!("{}: {} after {:.3} s: {said}", ran.line, ran.status, started.elapsed().as_secs_f64()));
        Ok(ran)
    }

    fn new(line: String, output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        let code = output.status.code().unwrap_or(-1);
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        Self { line, code, status: output.status, out, err, hung_in_wine: false }
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

/// Returns what Linux says of the system call in which each thread of a process is: its number, its arguments.
fn system_calls(process: u32) -> Vec<String> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    threads.map(|thread| fs::read_to_string(thread.path().join("syscall")).unwrap_or_default()).collect()
}

/// Returns whether all threads of a program wait for one lock of the C library, which none of them will release.
///
/// A program for Windows knows no such lock. Seen in Wine 8 in a program that had done its work: its exit waits for the
/// lock of the loader, whose owner has ended. A thread that is in the loader when the process ends may be that one.
fn is_in_a_lock_of_wine(calls: &[String]) -> bool {
    /// futex; FUTEX_WAIT_PRIVATE; the value of a lock for which others wait.
    const FUTEX: &str = "202";
    const LOCKED: [&str; 2] = ["0x80", "0x2"];
    let lock = |call: &String| {
        let mut words = call.split_whitespace();
        let (FUTEX, address) = (words.next()?, words.next()?) else { return None };
        LOCKED.into_iter().all(|word| words.next() == Some(word)).then(|| address.to_owned())
    };
    let first = calls.first().and_then(lock);
    first.is_some() && calls.iter().all(|call| lock(call) == first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_whose_threads_all_wait_for_one_lock_hangs_in_wine() {
        let lock = "202 0x7f40c1395a28 0x80 0x2 0x0 0x0 0x7ffe77b5f298 0x7f4";
        let is =
            |calls: &[&str]| is_in_a_lock_of_wine(&calls.iter().map(|call| (*call).to_owned()).collect::<Vec<_>>());
        assert!(is(&[lock, lock, "202 0x7f40c1395a28 0x80 0x2 0x0 0x0 0x1 0x2"]));
        assert!(is(&[lock]) && !is(&[]) && !is(&["running", "running"]) && !is(&["", ""]));
        for other in [
            "202 0x7f40c1395a20 0x80 0x2 0x0 0x0 0x1 0x2",
            "202 0x7f40c1395a28 0x80 0x0 0x0 0x0 0x1 0x2",
            "202 0x7f40c1395a28 0x81 0x2 0x0 0x0 0x1 0x2",
            "0 0x7f40c1395a28 0x80 0x2 0x0 0x0 0x1 0x2",
            "running",
        ] {
            assert!(!is(&[lock, other]) && !is(&[other, lock]), "{other}");
        }
    }

    #[test]
    fn the_system_calls_of_this_process_are_read() {
        if cfg!(target_os = "linux") {
            assert!(!system_calls(std::process::id()).is_empty());
        }
    }
}
