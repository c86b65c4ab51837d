//! workload.exe: a program with known functions.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use bench_protocol::InterruptSite;
use serde::Deserialize;

/// Share of the interrupts in each function by [`Workload::interrupt_sites`], in percent. The remainder is in the
/// kernel.
pub const SHARES: [(&str, u32); 3] = [("alpha", 45), ("beta", 30), ("gamma", 15)];

/// Number of addresses in each function that are interrupted.
const ADDRESSES: u32 = 4;

/// An address in ntoskrnl.exe, which Wine reports at 0x10000000 with 2 MiB (SystemModuleInformation, in
/// `dlls/ntdll/unix/system.c` of Wine 8). Its file is smaller, so it has no symbols.
const KERNEL: u64 = 0x1001_ED10;

/// A running workload.exe. Dropping it ends the program.
#[derive(Debug)]
pub struct Workload {
    child: Child,
    /// Its description of itself.
    pub description: Description,
}

/// The line that workload.exe prints.
#[derive(Debug, Clone, Deserialize)]
pub struct Description {
    /// Process ID.
    pub process: u32,
    /// Thread ID.
    pub thread: u32,
    /// Its functions.
    pub functions: Vec<Function>,
}

/// A function of workload.exe.
#[derive(Debug, Clone, Deserialize)]
pub struct Function {
    /// Its name in the PDB.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// Its approximate size in bytes.
    pub size: u64,
}

impl Workload {
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("cannot start workload.exe")?;
        let mut line = String::new();
        let out = child.stdout.take().context("no pipe from workload.exe")?;
        BufReader::new(out).read_line(&mut line).context("workload.exe printed nothing")?;
        let description = serde_json::from_str(&line).with_context(|| format!("workload.exe printed {line:?}"))?;
        Ok(Self { child, description })
    }

    /// Returns where a processor is interrupted, by [`SHARES`]: at several addresses of each function, and otherwise in
    /// the kernel on behalf of the program.
    #[must_use]
    pub fn interrupt_sites(&self) -> Vec<InterruptSite> {
        let Description { process, thread, functions } = &self.description;
        let shared = functions.iter().filter_map(|function| {
            let (_, percent) = SHARES.iter().find(|(name, _)| function.name == *name)?;
            Some((function, percent))
        });
        let inside = shared.flat_map(|(function, percent)| {
            let step = function.size / u64::from(ADDRESSES);
            (0..ADDRESSES).map(move |number| InterruptSite {
                ip: function.address + step * u64::from(number),
                user: true,
                process: *process,
                thread: *thread,
                weight: *percent,
            })
        });
        let rest: u32 = 100 - SHARES.iter().map(|(_, percent)| percent).sum::<u32>();
        let weight = rest * ADDRESSES;
        inside.chain([InterruptSite { ip: KERNEL, user: false, process: *process, thread: *thread, weight }]).collect()
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // The program runs until its input is closed or it is killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
