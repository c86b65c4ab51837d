//! halprof-agent.exe, and what it publishes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::RangeInclusive;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use bench_protocol::TraceScript;

use crate::lab::Lab;
use crate::start::{REPEATS, never_began};
use crate::{HANG_LIMIT, wait_for};

const RUN: [&str; 3] = ["run", "--config", "C:\\agent.toml"];

/// What the agent says before the address of its endpoint.
const ENDPOINT: &str = "metrics at http://";

/// A running agent, which is killed when this is dropped.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    address: String,
    lines: Receiver<String>,
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Agent {
    /// Starts an agent with this configuration, whose endpoint has a port of 127.0.0.1; 0 stands for a free one.
    ///
    /// # Errors
    /// The program cannot be started, or does not say where its metrics are.
    pub fn start(lab: &Lab, configuration: &str, port: u16) -> Result<Self> {
        configure(lab, configuration, port)?;
        Self::watch(|| Ok(lab.agent_command(&RUN)))
    }

    /// As [`start`](Self::start) with a free port, but `client agent run` starts the agent. Dropping this kills the
    /// client.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_by_client(lab: &Lab, configuration: &str) -> Result<Self> {
        configure(lab, configuration, 0)?;
        Self::watch(|| Ok(lab.client_command(&[&["agent"][..], &RUN].concat())))
    }

    /// As [`start`](Self::start) with a free port, and with the stand-in for Event Tracing for Windows.
    ///
    /// # Errors
    /// As `start`.
    pub fn start_traced(lab: &Lab, script: &TraceScript, configuration: &str) -> Result<Self> {
        configure(lab, configuration, 0)?;
        Self::watch(|| lab.traced_agent_command(script, &RUN))
    }

    /// Starts the command, again if it never began, and reads where its metrics are.
    fn watch(command: impl Fn() -> Result<Command>) -> Result<Self> {
        let start = || {
            let mut child = command()?.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
            let lines = lines_of(child.stderr.take().context("no standard error")?);
            // Without a line, the program has ended or hangs.
            let first = lines.recv_timeout(HANG_LIMIT).ok();
            let ended = if first.is_none() { child.try_wait()? } else { None };
            Ok((Self { child, address: String::new(), lines }, first, ended))
        };
        let is_silent = |(_, first, ended): &(Self, Option<String>, Option<ExitStatus>)| {
            ended.is_some_and(|status| never_began(status.code(), first.is_none()))
        };
        let (mut agent, first, ended) = REPEATS.start("halprof-agent.exe run", is_silent, start)?;
        let first = first.with_context(|| format!("halprof-agent.exe run said nothing: {ended:?}"))?;
        let line = if first.contains(ENDPOINT) { first } else { agent.says(ENDPOINT).context(first)? };
        agent_address(&line).with_context(|| line.clone())?.clone_into(&mut agent.address);
        Ok(agent)
    }

    /// Returns the address of the endpoint.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Waits for a line with this text, and returns it.
    ///
    /// # Errors
    /// There is none in time.
    pub fn says(&self, text: &str) -> Result<String> {
        line_with(&self.lines, text)
    }

    /// Returns the metrics as text, with the header of the response.
    ///
    /// # Errors
    /// The endpoint does not answer.
    pub fn scrape(&self) -> Result<String> {
        get(&self.address, "/metrics")
    }

    /// Waits until a sample has a value.
    ///
    /// # Errors
    /// It has not in time.
    pub fn reaches(&self, name: &str, expected: f64) -> Result<()> {
        self.waits_for(name, expected..=expected)
    }

    /// Waits until so many events are counted, besides those between the driver's accesses, which are fewer than a
    /// hundredth.
    ///
    /// # Errors
    /// They are not within the limit, or there is no answer.
    pub fn counts(&self, name: &str, events: u32) -> Result<()> {
        let events = f64::from(events);
        self.waits_for(name, events..=events * 1.01)
    }

    fn waits_for(&self, name: &str, expected: RangeInclusive<f64>) -> Result<()> {
        wait_for(|| {
            let text = self.scrape()?;
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<f64>().ok());
            let is_so = value.is_some_and(|value| expected.contains(&value));
            if is_so { Ok(()) } else { bail!("{name} is not in {expected:?}: {text}") }
        })
    }
}

/// Writes the configuration of the agent, `C:\agent.toml`, whose endpoint has a port of 127.0.0.1; 0 stands for a free
/// one.
///
/// # Errors
/// The file cannot be written.
pub fn configure(lab: &Lab, configuration: &str, port: u16) -> Result<()> {
    let text = format!("{configuration}[prometheus]\nlisten = \"127.0.0.1:{port}\"\n");
    Ok(std::fs::write(lab.wine().drive_c("agent.toml"), text)?)
}

/// Returns the address of the endpoint that an agent's line or log names.
#[must_use]
pub fn agent_address(text: &str) -> Option<&str> {
    text.split(ENDPOINT).nth(1)?.split('/').next()
}

/// Returns the lines that a program writes, from a thread that reads them.
pub fn lines_of(output: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    let output = BufReader::new(output);
    thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    lines
}

/// Waits for a line with this text, and returns it.
///
/// # Errors
/// There is none in time.
pub fn line_with(lines: &Receiver<String>, text: &str) -> Result<String> {
    let end = Instant::now() + HANG_LIMIT;
    let mut others = Vec::new();
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) if line.contains(text) => return Ok(line),
            Ok(line) => others.push(line),
            Err(_) => bail!("no line with {text} in {others:#?}"),
        }
    }
}

/// Sends an HTTP request, and returns the whole response.
///
/// # Errors
/// The server does not answer.
pub fn get(address: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(HANG_LIMIT))?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}
