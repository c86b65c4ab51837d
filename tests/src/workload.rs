//! workload.exe: a program with known functions.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use bench_protocol::{InterruptSite, SiteStack};
use serde::Deserialize;

use crate::start::start_with_retries;

/// Share of the interrupts in each function by [`Description::interrupt_sites`], in percent. The remainder is in the
/// kernel.
pub const SHARES: [(&str, u32); 3] = [("alpha", 45), ("beta", 30), ("gamma", 15)];

/// Share of the stacks of [`Description::traced_sites`] in which each caller occurs, in percent.
pub const CALLER_SHARES: [(&str, f64); 4] =
    [("run", 100.0), ("forward", 58.75), ("backward", 26.25), ("descend", 15.0)];

/// Number of addresses in each function that are interrupted.
const ADDRESSES: u32 = 4;

/// For each address of a function, which of the function's stacks in [`Description::stacks`] it has: `run` calls
/// `forward`, then `backward`, and both call `alpha` and `beta`.
const PATHS: [(&str, [usize; ADDRESSES as usize]); 3] =
    [("alpha", [0, 0, 0, 1]), ("beta", [0, 0, 1, 1]), ("gamma", [0, 0, 0, 0])];

/// An address in ntoskrnl.exe, which Wine reports at 0x10000000 with 2 MiB (SystemModuleInformation, in
/// `dlls/ntdll/unix/system.c` of Wine 8). Its file is smaller, so it has no symbols.
const KERNEL: u64 = 0x1001_ED10;

/// A kernel function and its callers in the upper half of the addresses, by which a stack tells kernel from user mode.
/// Windows has the kernel there, and the stand-in for Event Tracing for Windows says so of Wine's. In the ntoskrnl.exe
/// of Debian 12 they are KeWaitForSingleObject, ExAcquireResourceExclusiveLite and IofCallDriver.
const UPPER_KERNEL: [u64; 3] = [0xFFFF_F800_0001_ED10, 0xFFFF_F800_0002_0504, 0xFFFF_F800_0001_2DD0];

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
    /// Address of the structure `Queue`.
    pub queue: u64,
    /// Its functions.
    pub functions: Vec<Function>,
    /// The calls of the functions, in the order of execution.
    pub stacks: Vec<KnownStack>,
}

/// The callers of a function in one call.
#[derive(Debug, Clone, Deserialize)]
pub struct KnownStack {
    /// Name of the function.
    pub function: String,
    /// Return addresses from the innermost caller to the outermost, which are in kernel32.dll and ntdll.dll.
    pub callers: Vec<u64>,
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
    /// Starts the program and waits until it has described itself.
    pub(crate) fn start(command: impl Fn() -> Command) -> Result<Self> {
        start_with_retries(|| Self::start_once(command()))
    }

    fn start_once(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("cannot start workload.exe")?;
        let mut line = String::new();
        let out = child.stdout.take().context("no pipe from workload.exe")?;
        BufReader::new(out).read_line(&mut line).context("workload.exe printed nothing")?;
        let description = serde_json::from_str(&line).with_context(|| format!("workload.exe printed {line:?}"))?;
        Ok(Self { child, description })
    }
}

impl Description {
    /// Returns where a processor is interrupted, by [`SHARES`]: at several addresses of each function, and otherwise in
    /// the kernel on behalf of the program.
    #[must_use]
    pub fn interrupt_sites(&self) -> Vec<InterruptSite> {
        let Self { process, thread, functions, .. } = self;
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

    /// Returns the [interrupt sites](Self::interrupt_sites) and the stack of each. The site in the kernel is in the
    /// upper half of the addresses, in a system call from `forward`. [`CALLER_SHARES`] are the shares of the callers.
    ///
    /// # Errors
    /// The program did not describe the stack of a function.
    pub fn traced_sites(&self) -> Result<Vec<(InterruptSite, SiteStack)>> {
        let functions = self.functions.iter();
        let paths = functions.filter_map(|function| PATHS.iter().find(|(name, _)| function.name == *name));
        let calls = paths.flat_map(|(name, numbers)| numbers.map(|number| (*name, number)));
        let of_system_call = ("alpha", 0);
        let stack = |(site, (name, number)): (InterruptSite, _)| {
            let callers = self.callers(name, number)?;
            let [innermost, ..] = UPPER_KERNEL;
            let (ip, kernel, user) = if site.user {
                (site.ip, Vec::new(), [&[site.ip], callers].concat())
            } else {
                (innermost, UPPER_KERNEL.to_vec(), callers.to_vec())
            };
            let stack = SiteStack { ip, process: site.process, kernel, user, raised: false };
            Ok((InterruptSite { ip, ..site }, stack))
        };
        self.interrupt_sites().into_iter().zip(calls.chain([of_system_call])).map(stack).collect()
    }

    /// Returns the callers of `function` in the call with this number.
    fn callers(&self, function: &str, number: usize) -> Result<&[u64]> {
        let mut stacks = self.stacks.iter().filter(|stack| stack.function == function);
        let stack = stacks.nth(number).with_context(|| format!("workload.exe has no stack {number} of {function}"))?;
        Ok(&stack.callers)
    }
}

impl Drop for Workload {
    fn drop(&mut self) {
        // The program runs until its input is closed or it is killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
