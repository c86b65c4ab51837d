//! workload.exe: a program with known functions, for sampling it and for looking up its addresses in its PDB.
//!
//! `workload.exe SECONDS` executes its functions so long. Meanwhile its description is in a file for the test bench.
//! `workload.exe describe` prints the description, one line of JSON, and exits when its standard input is closed:
//!
//! ```json
//! {"process":32,"thread":36,"queue":5368721408,
//!  "functions":[{"name":"alpha","address":5368713216,"size":208},...],
//!  "stacks":[{"function":"alpha","callers":[5368713600,...]},...]}
//! ```
//!
//! `queue` is the address of a structure of `workload-data`. `stacks` has an entry for each call of a function: the
//! return addresses from the innermost caller to the outermost.
//!
//! `workload.exe steps` executes these and other functions one instruction at a time. It prints a list of the
//! functions, then one line for each instruction before it is executed, and exits:
//!
//! ```json
//! [{"name":"alpha","address":5368713216,"size":208},...]
//! {"ip":5368713216,"registers":[0,...],"stack":[5368713600,...],"callers":[5368713600,...]}
//! ```
//!
//! `registers` has the order of the numbers in instructions: RAX, RCX, RDX, RBX, RSP and so on. `stack` has the 64-bit
//! words from RSP to the frame of the entry point. `callers` has the return addresses that RtlVirtualUnwind finds.

#![cfg_attr(all(windows, target_env = "msvc"), no_std, no_main)]

#[cfg(all(windows, target_env = "msvc"))]
mod callers;
#[cfg(all(windows, target_env = "msvc"))]
mod console;
#[cfg(all(windows, target_env = "msvc"))]
mod functions;
#[cfg(all(windows, target_env = "msvc"))]
mod known;
#[cfg(all(windows, target_env = "msvc"))]
mod program;
#[cfg(all(windows, target_env = "msvc"))]
mod prologs;
#[cfg(all(windows, target_env = "msvc"))]
mod steps;
#[cfg(all(windows, target_env = "msvc"))]
mod windows;

/// A function of the program.
#[cfg(all(windows, target_env = "msvc"))]
struct Function {
    name: &'static str,
    address: usize,
    /// Size in bytes.
    size: u64,
}

#[cfg(not(all(windows, target_env = "msvc")))]
fn main() {
    eprintln!("workload is a program for Windows, built for its PDB");
    std::process::exit(2);
}
