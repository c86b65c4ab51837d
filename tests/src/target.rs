//! target.exe: a program whose functions are known.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use serde::Deserialize;

/// It, running. It ends when it goes.
#[derive(Debug)]
pub struct Target {
    child: Child,
    /// What it said of itself.
    pub says: Says,
}

/// The line that it prints.
#[derive(Debug, Clone, Deserialize)]
pub struct Says {
    /// Its process.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// Its functions.
    pub functions: Vec<Function>,
}

/// A function of it.
#[derive(Debug, Clone, Deserialize)]
pub struct Function {
    /// By which its PDB knows it.
    pub name: String,
    /// Where it begins.
    pub address: u64,
    /// Bytes of it, about.
    pub size: u64,
}

impl Target {
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("cannot start target.exe")?;
        let mut line = String::new();
        let out = child.stdout.take().context("no pipe from target.exe")?;
        BufReader::new(out).read_line(&mut line).context("target.exe says nothing")?;
        let says = serde_json::from_str(&line).with_context(|| format!("target.exe says {line:?}"))?;
        Ok(Self { child, says })
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // It stays until its input is closed; killed, it can not stay.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
