//! probe.exe, which is controlled by lines of text: it opens the device and sends arbitrary requests.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::HANG_LIMIT;
use crate::log;
use crate::start::start_with_retries;

/// A running probe.exe. Dropping it ends the program.
#[derive(Debug)]
pub struct Probe {
    child: Child,
    to: ChildStdin,
    /// Lines of its output, which another thread reads.
    from: Receiver<String>,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The output.
    Done(Vec<u8>),
    /// The Win32 error code.
    Failed(u32),
}

impl Probe {
    /// Starts the program and waits until it answers.
    pub(crate) fn start(command: impl Fn() -> Command) -> Result<Self> {
        start_with_retries(|| Self::start_once(command()))
    }

    fn start_once(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("cannot start probe.exe")?;
        let to = child.stdin.take().context("no pipe to probe.exe")?;
        let out = BufReader::new(child.stdout.take().context("no pipe from probe.exe")?);
        let (lines, from) = mpsc::channel();
        // The thread ends with the program, or when the receiver is dropped.
        thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| lines.send(line)));
        let mut probe = Self { child, to, from };
        probe.command("pid")?;
        Ok(probe)
    }

    /// Sends a line and returns the answer.
    ///
    /// # Errors
    /// The program has ended.
    pub fn command(&mut self, line: &str) -> Result<String> {
        self.send(line)?;
        self.answer(line)
    }

    fn send(&mut self, line: &str) -> Result<()> {
        log::note(&format!("probe {}: {line}", self.child.id()));
        writeln!(self.to, "{line}").context("cannot write to probe.exe")
    }

    fn answer(&mut self, line: &str) -> Result<String> {
        match self.from.recv_timeout(HANG_LIMIT) {
            Ok(answer) => {
                log::note(&format!("probe {}: -> {answer}", self.child.id()));
                Ok(answer.trim_end().to_owned())
            }
            Err(RecvTimeoutError::Timeout) => bail!("probe.exe did not answer {line:?} within {HANG_LIMIT:?}"),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("probe.exe is gone ({}), asked for {line:?}", self.child.wait()?)
            }
        }
    }

    /// Opens the device and returns the number of the handle, or the Win32 error.
    ///
    /// # Errors
    /// The program has ended.
    pub fn open(&mut self, how: &str) -> Result<std::result::Result<u32, u32>> {
        let answer = self.command(&format!("open {how}"))?;
        match answer.split_once(' ') {
            Some(("handle", number)) => Ok(Ok(number.parse()?)),
            Some(("error", code)) => Ok(Err(code.parse()?)),
            _ => bail!("unexpected answer of probe.exe: {answer:?}"),
        }
    }

    /// Starts (`load`), stops (`unload`) or deletes (`delete`) the service of a driver. The inner result is the Win32
    /// error.
    ///
    /// # Errors
    /// The program has ended.
    pub fn service(&mut self, action: &str, name: &str) -> Result<std::result::Result<(), u32>> {
        self.done(&format!("{action} {name}"))
    }

    /// Creates the service of a driver in a load-order group. The inner result is the Win32 error.
    ///
    /// # Errors
    /// The program has ended.
    pub fn create_service(&mut self, name: &str, file: &str, group: &str) -> Result<std::result::Result<(), u32>> {
        self.done(&format!("create {name} {file} {group}"))
    }

    fn done(&mut self, line: &str) -> Result<std::result::Result<(), u32>> {
        let answer = self.command(line)?;
        match answer.split_once(' ') {
            None if answer == "ok" => Ok(Ok(())),
            Some(("error", code)) => Ok(Err(code.parse()?)),
            _ => bail!("unexpected answer of probe.exe: {answer:?}"),
        }
    }

    /// Sends a request and waits for its result. `input` is hexadecimal, `null` or `-`; `output` is a length or `null`.
    ///
    /// # Errors
    /// The program has ended.
    pub fn control(&mut self, handle: u32, code: u32, input: &str, output: &str) -> Result<Reply> {
        self.send_request(handle, code, input, output)?;
        self.wait_for_result()
    }

    /// Sends a request that may be pended, without waiting. [`wait_for_result`](Self::wait_for_result) returns its
    /// result.
    ///
    /// # Errors
    /// The program has ended.
    pub fn send_request(&mut self, handle: u32, code: u32, input: &str, output: &str) -> Result<()> {
        self.send(&format!("ioctl {handle} {code:#x} {input} {output}"))
    }

    /// Waits for the result of a request that [`send_request`](Self::send_request) sent.
    ///
    /// # Errors
    /// The program has ended.
    pub fn wait_for_result(&mut self) -> Result<Reply> {
        let answer = self.answer("ioctl")?;
        let mut words = answer.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("ok"), Some(_), bytes) => Ok(Reply::Done(unhex(bytes.unwrap_or_default())?)),
            (Some("error"), Some(code), _) => Ok(Reply::Failed(code.parse()?)),
            _ => bail!("unexpected answer of probe.exe: {answer:?}"),
        }
    }

    /// Sends a request on a separate thread and returns a number for [`join`](Self::join).
    ///
    /// # Errors
    /// The program has ended.
    pub fn spawn_request(&mut self, handle: u32, code: u32, input: &str, output: &str) -> Result<u32> {
        let answer = self.command(&format!("spawn {handle} {code:#x} {input} {output}"))?;
        let number =
            answer.strip_prefix("spawned ").with_context(|| format!("unexpected answer of probe.exe: {answer:?}"))?;
        Ok(number.parse()?)
    }

    /// Waits for the result of a request that `spawn_request` sent.
    ///
    /// # Errors
    /// The program has ended.
    pub fn join(&mut self, request: u32) -> Result<Reply> {
        self.send(&format!("join {request}"))?;
        self.wait_for_result()
    }

    /// Terminates the program, as Task Manager does.
    ///
    /// # Errors
    /// The program cannot be killed.
    pub fn kill(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.child.kill().context("cannot kill probe.exe")?;
        self.child.wait().context("cannot wait for probe.exe")?;
        Ok(())
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // An error means that the program has already ended.
        let _ = self.end();
    }
}

/// Returns bytes in hexadecimal, the input format of probe.exe.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xF)]).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>> {
    let pairs = (0..text.len() / 2).filter_map(|at| text.get(2 * at..2 * at + 2));
    pairs.map(|pair| u8::from_str_radix(pair, 16).with_context(|| format!("{pair:?} is not hexadecimal"))).collect()
}
